// The filters of convolutions, as the CNA reads them, and their operands per channel, as the DPU does.
#include "sim/weights.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/front.h"
#include "npus/rockchip/sim/task.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint32_t kDense = 1, kGroups = 7;                                  // forms of the operands per channel
constexpr int kStoredZero = 128;                                             // weights are stored minus this
constexpr int64_t kKernelGroup = 32, kLaneGroup = 32, kDepthwiseGroup = 64;  // specification 5.3

template <typename T>
Result<T> read_number(const Dma& dma, uint64_t address) {
  std::array<uint8_t, sizeof(T)> bytes;
  SK_TRY(dma.read(address, bytes, "operands per channel"));
  return load_le<T>(bytes.data());
}

Result<void> read_channels(const DpuJob& dpu, const Dma& dma, Weights& out) {
  const auto at = static_cast<uint64_t>(dpu.channel_address);
  int correction = dpu.correct ? dpu.correction : 0;
  if (dpu.channel_operands == kGroups && dpu.correction_from_memory)
    SK_TRY_INTO(correction, read_number<int16_t>(dma, at + static_cast<uint64_t>(dpu.correction_at)));
  out.zero_point = static_cast<uint8_t>(kStoredZero - correction);
  const auto group = static_cast<uint64_t>(dpu.operand_group), group_bytes = static_cast<uint64_t>(dpu.operand_bytes);
  for (uint64_t c = 0; c < static_cast<uint64_t>(out.kernels); ++c) {
    int32_t bias = dpu.bs.alu_operand;
    if (dpu.bs.alu_from_memory && dpu.channel_operands == kDense) {
      SK_TRY_ASSIGN(bias, read_number<int32_t>(dma, at + c * 4));
    } else if (dpu.bs.alu_from_memory && dpu.channel_operands == kGroups) {
      SK_TRY_ASSIGN(bias, read_number<int32_t>(dma, at + c / group * group_bytes + c % group * 4));
    }
    out.biases.push_back(bias);
  }
  return {};
}

// Filler bytes in order of address: the same byte everywhere, or the weights have another order.
class Filler {
 public:
  void add(int8_t byte) {
    is_one_ = is_one_ && (!first_ || *first_ == byte);
    if (!first_) first_ = byte;
  }
  bool is_one() const { return is_one_; }

 private:
  std::optional<int8_t> first_;
  bool is_one_ = true;
};

bool fills_up_evenly(const ConvJob& conv, const std::vector<int8_t>& spread, int64_t kernels, int64_t planes) {
  const int64_t stride = conv.lane_stride(), taps = conv.taps();
  Filler lanes, pad_kernels;
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t lane = conv.depthwise ? kernels : conv.in_lanes; lane < conv.in_lanes; ++lane)
      lanes.add(spread[static_cast<size_t>(tap * stride + lane)]);
    for (int64_t k = kernels; !conv.depthwise && k < conv.kernels; ++k) {
      for (int64_t plane = 0; plane < planes; ++plane)
        pad_kernels.add(spread[static_cast<size_t>((k * taps + tap) * stride + plane)]);
    }
  }
  return lanes.is_one() && pad_kernels.is_one();
}

// The bytes in the order of some recorded jobs, moved to the places that their registers announce.
struct Moved {
  std::string_view order;
  Bytes bytes;
  bool is_even = true;  // all filler bytes are equal
};

// Rows of the last group of depthwise channels are stored without filler.
std::optional<Moved> with_short_rows(const ConvJob& conv, const Bytes& stored, int64_t channels) {
  const int64_t taps = conv.taps(), before = channels / kDepthwiseGroup * kDepthwiseGroup;
  const int64_t own = channels - before, announced = conv.in_lanes - before;
  if (announced <= own || own <= kDepthwiseGroup / 2) return std::nullopt;
  Moved out{.order = "short_rows", .bytes = Bytes(stored.size())};
  const auto from = stored.begin() + before * taps;
  const auto to = out.bytes.begin() + before * taps;
  std::copy(stored.begin(), from, out.bytes.begin());
  for (int64_t tap = 0; tap < taps; ++tap) std::copy_n(from + tap * own, own, to + tap * announced);
  const auto rest = from + taps * own, end = stored.begin() + conv.weight_bytes;
  out.is_even = std::all_of(rest, end, [&](uint8_t byte) { return byte == *rest; });
  return out;
}

// A filler kernel that makes their number even has rows of 32 lanes where the others have fewer: more bytes than
// announced.
std::optional<Moved> with_wide_filler(const ConvJob& conv, const Bytes& stored, int64_t kernels) {
  const int64_t taps = conv.taps(), lanes = conv.in_lanes % kLaneGroup, whole = conv.in_lanes - lanes;
  const int64_t before = (conv.kernels - 1) / kKernelGroup * kKernelGroup, in_group = conv.kernels - before;
  if (kernels != conv.kernels - 1 || lanes == 0 || whole == 0) return std::nullopt;
  Moved out{.order = "wide_filler", .bytes = Bytes(stored.size())};
  const int64_t start = before * taps * conv.in_lanes + whole * taps * in_group, rows = (in_group - 1) * lanes;
  if (static_cast<int64_t>(stored.size()) < start + taps * (rows + kLaneGroup)) return std::nullopt;
  std::copy_n(stored.begin(), start, out.bytes.begin());
  for (int64_t tap = 0; tap < taps; ++tap) {
    const auto from = stored.begin() + start + tap * (rows + kLaneGroup);
    std::copy_n(from, rows, out.bytes.begin() + start + tap * in_group * lanes);
    out.is_even = out.is_even && std::all_of(from + rows, from + rows + kLaneGroup, [](uint8_t b) { return b == 0; });
  }
  return out;
}

Weights arranged(const ConvJob& conv, const std::vector<int8_t>& spread, Weights out) {
  const int64_t stride = conv.lane_stride(), taps = conv.taps();
  for (int64_t kernel = 0; kernel < out.kernels; ++kernel) {
    for (int64_t plane = 0; plane < out.planes; ++plane) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = conv.depthwise ? tap * stride + kernel : (kernel * taps + tap) * stride + plane;
        out.bytes.push_back(static_cast<uint8_t>(spread[static_cast<size_t>(at)] + kStoredZero));
      }
    }
  }
  return out;
}

// Each weight is a sum of two bytes and may need more than a byte: adds a zero point with which all fit a byte.
Result<Weights> with_sums(const ConvJob& conv, const Bytes& stored, Weights out) {
  const std::vector<int8_t> first = read_weights(conv, stored).plain, second = second_weights(conv, stored).plain;
  std::vector<int> sums;
  for (int64_t kernel = 0; kernel < out.kernels; ++kernel) {
    for (int64_t tap = 0; tap < conv.taps(); ++tap) {
      const auto at = static_cast<size_t>(tap * conv.lane_stride() + kernel);
      sums.push_back(first[at] + second[at]);
    }
  }
  const auto [least, most] = std::ranges::minmax(sums);
  const int zero_point = least < -kStoredZero ? -least : std::min(UINT8_MAX - most, kStoredZero);
  if (zero_point < 0 || zero_point + most > UINT8_MAX)
    return not_modelled("depthwise weights from {} to {}: they are no bytes", least, most);
  out.zero_point = static_cast<uint8_t>(zero_point);
  for (const int sum : sums) out.bytes.push_back(static_cast<uint8_t>(sum + zero_point));
  return out;
}

// All bytes that may belong to the weights: those that the registers announce, and those of a wider filler.
Result<Bytes> read_stored(const ConvJob& conv, const Dma& dma) {
  SK_TRY_ASSIGN(Bytes stored, dma.read(static_cast<uint64_t>(conv.weight_address),
                                       static_cast<uint64_t>(conv.weight_bytes), "weights"));
  if (conv.depthwise) return stored;
  Bytes beyond(static_cast<size_t>(conv.taps() * kLaneGroup));
  const auto end = static_cast<uint64_t>(conv.weight_address + conv.weight_bytes);
  if (dma.read(end, beyond, "weights").ok()) stored.insert(stored.end(), beyond.begin(), beyond.end());
  return stored;
}

Result<Weights> convolution(const ConvJob& conv, const DpuJob& dpu, int64_t true_planes, const Dma& dma) {
  SK_TRY_ASSIGN(const Bytes stored, read_stored(conv, dma));
  Weights empty{
      .kernels = conv.depthwise ? std::min(dpu.true_lanes, conv.in_lanes) : std::min(dpu.true_lanes, conv.kernels),
      .planes = conv.depthwise ? 1 : true_planes,
      .height = conv.kernel_height,
      .width = conv.kernel_width,
      .depthwise = conv.depthwise};
  SK_TRY(read_channels(dpu, dma, empty));
  if (conv.paired_weights) return with_sums(conv, stored, std::move(empty));
  const std::vector<int8_t> announced = read_weights(conv, stored).plain;
  Weights out = arranged(conv, announced, empty);
  if (fills_up_evenly(conv, announced, out.kernels, out.planes)) return out;
  const std::optional<Moved> moved =
      conv.depthwise ? with_short_rows(conv, stored, out.kernels) : with_wide_filler(conv, stored, out.kernels);
  if (!moved) return out;
  out.order = "announced";
  Weights other = arranged(conv, read_weights(conv, moved->bytes).plain, std::move(empty));
  other.order = moved->order;
  if (moved->is_even) std::swap(out, other);
  out.others.push_back(std::move(other));
  return out;
}

Result<Weights> read_convolution(Registers& registers, const hw::ChipRow& chip, const Dma& dma) {
  const Options options = options_without_rules();
  const Front& front = front_of(chip);
  SK_TRY_ASSIGN(const ConvJob conv, front.read_conv_job(registers, chip, options));
  SK_TRY_ASSIGN(const DpuJob dpu, front.read_dpu_job(registers, &conv, options));
  const int64_t planes = chip.has(hw::kRegisters3576) ? registers.get<hw::rk3576::CnaDataSize0>().datain_channel
                                                      : registers.get<hw::CnaDataSize1>().datain_channel_real;
  return convolution(conv, dpu, planes, dma);
}

}  // namespace

Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, const Memory& memory) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr || !row->has_registers()) return skillet::error(ErrorCode::unsupported, "no such chip");
  const Options options = options_without_rules();
  const Dma dma(memory);
  Registers registers(0, hw::registers_of(*row), row->has(hw::kStreamsPoint));
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
