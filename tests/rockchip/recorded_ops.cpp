#include "recorded_ops.h"

#include <array>
#include <map>

#include "drivers/rockchip/hw/rockchip.h"

namespace skillet::rockchip_replay {
namespace {

namespace hw = ::skillet::rockchip::hw;

const capture::BufferSnapshot* buffer_at(const capture::Submission& submission, uint64_t address) {
  for (const capture::BufferSnapshot& b : submission.buffers) {
    if (b.address != 0 && address >= b.address && address - b.address < b.size_bytes) return &b;
  }
  return nullptr;
}

using Values = std::map<uint32_t, uint32_t>;  // register -> last value

Values register_values(const capture::BufferSnapshot& buffer, const capture::Task& task) {
  Values values;
  for (uint64_t at = task.address - buffer.address, i = 0; i < task.count; ++i, at += hw::kCommandBytes) {
    std::array<uint32_t, 2> words{};
    if (at + 8 <= buffer.bytes.size()) std::memcpy(words.data(), buffer.bytes.data() + at, 8);
    const auto command = bits::read<hw::Command>(words);
    values[command.address] = command.value;
  }
  return values;
}

template <typename T>
T get(const Values& values) {
  const auto found = values.find(T::kAddress);
  const uint32_t value = found == values.end() ? 0 : found->second;
  return bits::read<T>({&value, 1});
}

void describe(const Values& values, RecordedOp& op) {
  const auto con1 = get<hw::CnaConvCon1>(values);
  op.input = get<hw::CnaFeatureDataAddr>(values).feature_base_addr.offset;
  op.output = get<hw::DpuDstBaseAddr>(values).dst_base_addr.offset;
  op.second = get<hw::DpuRdmaSrcBaseAddr>(values).src_base_addr.offset;
  op.addition = !get<hw::DpuEwCfg>(values).ew_bypass;
  op.packed = con1.argb_in != hw::PixelFormat::cube;
  op.depthwise = con1.conv_mode == hw::ConvMode::depthwise;
  op.in_channels = get<hw::CnaDataSize1>(values).datain_channel_real;
  op.out_channels = get<hw::DpuDataCubeChannel>(values).orig_channel;
  op.kernel_width = get<hw::CnaWeightSize2>(values).weight_width;
  op.kernel_height = get<hw::CnaWeightSize2>(values).weight_height;
  op.out_width = get<hw::DpuDataCubeWidth>(values).width;
  op.out_pixels = get<hw::DpuDstSurfStride>(values).dst_surf_stride / 16;
}

}  // namespace

Result<std::vector<RecordedOp>> recorded_ops(const capture::Capture& capture) {
  std::vector<RecordedOp> ops;
  for (size_t s = 0; s < capture.submissions.size(); ++s) {
    const capture::Submission& submission = capture.submissions[s];
    uint32_t last_buffer = 0;
    for (size_t t = 0; t < submission.tasks.size(); ++t) {
      const capture::Task& task = submission.tasks[t];
      const capture::BufferSnapshot* const buffer = buffer_at(submission, task.address);
      if (buffer == nullptr) return error(ErrorCode::malformed, "task {}: commands in no buffer", t);
      if (ops.empty() || ops.back().submission != s || buffer->handle != last_buffer) {
        ops.push_back({.submission = s});
        describe(register_values(*buffer, task), ops.back());
      }
      last_buffer = buffer->handle;
      ops.back().tasks.push_back(t);
    }
  }
  return ops;
}

}  // namespace skillet::rockchip_replay
