// The filters of convolutions, as the CNA reads them, and their operands per channel, as the DPU does.
#include "sim/weights.h"

#include "base/bytes.h"
#include "sim/rockchip/conv.h"
#include "sim/rockchip/dpu.h"
#include "sim/rockchip/fault.h"
#include "sim/rockchip/task.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint32_t kDense = 1, kGroups = 7;  // forms of the operands per channel
constexpr uint64_t kGroup = 8, kGroupBytes = 64, kCorrectionsAt = 32;
constexpr int kStoredZero = 128;  // weights are stored less that

template <typename T>
Result<T> read_number(const Dma& dma, uint64_t address) {
  std::array<uint8_t, sizeof(T)> bytes;
  SK_TRY(dma.read(address, bytes, "operands per channel"));
  return load_le<T>(bytes.data());
}

Result<void> read_channels(const DpuJob& dpu, const Dma& dma, Weights& out) {
  const auto at = static_cast<uint64_t>(dpu.channel_address);
  int correction = dpu.correct ? dpu.correction : 0;
  if (dpu.channel_operands == kGroups && dpu.correction_from_memory) {
    SK_TRY_ASSIGN(correction, read_number<int16_t>(dma, at + kCorrectionsAt));
  }
  out.zero_point = static_cast<uint8_t>(kStoredZero - correction);
  for (uint64_t c = 0; c < static_cast<uint64_t>(out.kernels); ++c) {
    int32_t bias = dpu.bs.alu_operand;
    if (dpu.bs.alu_from_memory && dpu.channel_operands == kDense) {
      SK_TRY_ASSIGN(bias, read_number<int32_t>(dma, at + c * 4));
    } else if (dpu.bs.alu_from_memory && dpu.channel_operands == kGroups) {
      SK_TRY_ASSIGN(bias, read_number<int32_t>(dma, at + c / kGroup * kGroupBytes + c % kGroup * 4));
    }
    out.biases.push_back(bias);
  }
  return {};
}

Result<Weights> convolution(const ConvJob& conv, const DpuJob& dpu, int64_t true_planes, const Dma& dma) {
  Bytes stored(static_cast<size_t>(conv.weight_bytes));
  SK_TRY(dma.read(static_cast<uint64_t>(conv.weight_address), stored, "weights"));
  const std::vector<int8_t> spread = read_weights(conv, stored).plain;
  const int64_t stride = conv.lane_stride(), taps = conv.taps();
  Weights out{
      .kernels = conv.depthwise ? std::min(dpu.true_lanes, conv.in_lanes) : std::min(dpu.true_lanes, conv.kernels),
      .planes = conv.depthwise ? 1 : true_planes,
      .height = conv.kernel_height,
      .width = conv.kernel_width,
      .depthwise = conv.depthwise};
  for (int64_t kernel = 0; kernel < out.kernels; ++kernel) {
    for (int64_t plane = 0; plane < out.planes; ++plane) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = conv.depthwise ? tap * stride + kernel : (kernel * taps + tap) * stride + plane;
        out.bytes.push_back(static_cast<uint8_t>(spread[static_cast<size_t>(at)] + kStoredZero));
      }
    }
  }
  SK_TRY(read_channels(dpu, dma, out));
  return out;
}

Result<Weights> read_convolution(Registers& registers, const hw::ChipRow& chip, const Dma& dma) {
  const Options options;
  SK_TRY_ASSIGN(const ConvJob conv, read_conv_job(registers, chip, options));
  SK_TRY_ASSIGN(const DpuJob dpu, read_dpu_job(registers, &conv, options));
  return convolution(conv, dpu, registers.get<hw::CnaDataSize1>().datain_channel_real, dma);
}

}  // namespace

Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, const Memory& memory) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return skillet::error(ErrorCode::unsupported, "no such chip");
  const Options options;
  const Dma dma(memory);
  Registers registers(0);
  std::vector<std::optional<Weights>> all;
  for (const Commands& task : job.commands) {
    std::optional<Weights>& weights = all.emplace_back();
    SK_TRY_ASSIGN(const uint32_t blocks, read_task(registers, dma, task, options));
    if (bits::read<hw::BlockEnable>({&blocks, 1}).cna) {
      auto read = read_convolution(registers, *row, dma);
      weights = read.ok() ? std::move(read).value() : Weights{.problem = read.error().message};
    }
    finish_task(registers, blocks);
  }
  return all;
}

}  // namespace skillet::sim::rockchip
