#include "recorded_ops.h"

#include <array>

namespace skillet::rockchip_replay {
namespace {

const capture::BufferSnapshot* buffer_at(const capture::Submission& submission, uint64_t address) {
  for (const capture::BufferSnapshot& b : submission.buffers) {
    if (b.address != 0 && address >= b.address && address - b.address < b.size_bytes) return &b;
  }
  return nullptr;
}

void read_registers(const capture::BufferSnapshot& buffer, const capture::Commands& task, RecordedOp& op) {
  for (uint64_t at = task.address - buffer.address, i = 0; i < task.size_bytes / hw::kCommandBytes;
       ++i, at += hw::kCommandBytes) {
    std::array<uint32_t, 2> words{};
    if (at + 8 <= buffer.bytes.size()) std::memcpy(words.data(), buffer.bytes.data() + at, 8);
    const auto command = bits::read<hw::Command>(words);
    op.registers[command.address] = command.value;
  }
}

void describe(RecordedOp& op) {
  const auto con1 = op.get<hw::CnaConvCon1>();
  op.input = op.get<hw::CnaFeatureDataAddr>().feature_base_addr.offset;
  op.output = op.get<hw::DpuDstBaseAddr>().dst_base_addr.offset;
  op.second = op.get<hw::DpuRdmaSrcBaseAddr>().src_base_addr.offset;
  op.addition = !op.get<hw::DpuEwCfg>().ew_bypass;
  op.packed = con1.argb_in != hw::PixelFormat::cube;
  op.depthwise = con1.conv_mode == hw::ConvMode::depthwise;
  op.in_channels = op.get<hw::CnaDataSize1>().datain_channel_real;
  op.out_channels = op.get<hw::DpuDataCubeChannel>().orig_channel;
  op.kernel_width = op.get<hw::CnaWeightSize2>().weight_width;
  op.kernel_height = op.get<hw::CnaWeightSize2>().weight_height;
  op.out_width = op.get<hw::DpuDataCubeWidth>().width;
  op.out_pixels = op.get<hw::DpuDstSurfStride>().dst_surf_stride / 16;
}

}  // namespace

Result<std::vector<RecordedOp>> recorded_ops(const capture::Capture& capture) {
  std::vector<RecordedOp> ops;
  for (size_t s = 0; s < capture.submissions.size(); ++s) {
    const capture::Submission& submission = capture.submissions[s];
    uint32_t last_buffer = 0;
    for (size_t j = 0; j < submission.jobs.size(); ++j) {
      for (const capture::Commands& task : submission.jobs[j].commands) {
        const capture::BufferSnapshot* const buffer = buffer_at(submission, task.address);
        if (buffer == nullptr) return error(ErrorCode::malformed, "job {}: commands in no buffer", j);
        if (ops.empty() || ops.back().submission != s || buffer->handle != last_buffer) {
          ops.push_back({.submission = s});
          read_registers(*buffer, task, ops.back());
          describe(ops.back());
        }
        last_buffer = buffer->handle;
        ops.back().tasks.push_back({j, task});
      }
    }
  }
  return ops;
}

}  // namespace skillet::rockchip_replay
