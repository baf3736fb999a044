// The stages of most convolutions, all channels of a pixel at a time: window correction, addend, ReLU, output
// converter. What they do not need, and numbers that might not fit 32 bits between stages, is left to dpu_run.cpp.
#include <algorithm>
#include <cstdlib>

#include "npus/rockchip/sim/dpu_job.h"
#include "simd/gemm.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int kShiftMax = 61;  // of gemm::scale

int64_t largest(const std::vector<int32_t>& values) {
  int64_t most = 0;
  for (const int32_t value : values) most = std::max(most, std::abs(int64_t{value}));
  return most;
}

bool has_fast_stages(const DpuJob& job, const ConvJob& conv, const Options& options) {
  const bool plain_stages = !job.bs.multiply && !job.bn.alu && !job.bn.multiply && job.ew.op == EwOp::none;
  const bool plain_output = job.out_scale >= 0 && job.out_shift >= 1 && job.out_shift <= kShiftMax &&
                            job.out_tie != Tie::floor && std::abs(job.out_offset) < 1 << 16;
  return plain_stages && plain_output && !job.lookup.on && conv.truncate == 0 && !options.offset_before_rounding &&
         !(options.cpend_plus_one_with_multiplier && job.channel_operands > 1);
}

// No stage saturates or wraps, whatever the features are.
bool fits_32_bits(const ConvJob& conv, const ChannelOperands& channels) {
  const int64_t products = conv.taps() * (conv.depthwise ? 1 : conv.lane_stride());
  return products * 128 * (128 + largest(channels.b)) + largest(channels.a) <= INT32_MAX;
}

gemm::Ties ties_of(Tie tie) {
  return tie == Tie::even ? gemm::Ties::even : tie == Tie::up ? gemm::Ties::up : gemm::Ties::away;
}

void clamp(const Stage& stage, std::vector<int32_t>& values) {
  if (stage.relu) {
    for (int32_t& v : values) v = std::max(v, 0);
  }
  if (stage.clamp) {
    for (int32_t& v : values) v = std::min(v, *stage.clamp);
  }
}

}  // namespace

std::optional<std::vector<uint8_t>> run_stages_fast(const DpuJob& job, const ConvJob& conv, const ConvSums& sums,
                                                    const ChannelOperands& channels, const Options& options) {
  if (!has_fast_stages(job, conv, options) || !fits_32_bits(conv, channels)) return std::nullopt;
  const auto lanes = static_cast<size_t>(job.lanes), pixels = static_cast<size_t>(job.pixels());
  std::vector<uint8_t> out(pixels * lanes);
  std::vector<int32_t> values(lanes), addends(lanes);
  if (job.bs.alu) {
    for (size_t i = 0; i < lanes; ++i) addends[i] = job.bs.subtract ? -channels.a[i] : channels.a[i];
  }
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    const int32_t* const sum = sums.sum.data() + pixel * lanes;
    const int32_t* const window = sums.window.data() + (job.depthwise ? pixel * lanes : pixel);
    for (size_t i = 0; i < lanes; ++i) values[i] = sum[i] + channels.b[i] * window[job.depthwise ? i : 0] + addends[i];
    clamp(job.bs, values);
    clamp(job.bn, values);
    const gemm::Factor factor{job.out_scale, static_cast<int>(job.out_shift), ties_of(job.out_tie)};
    gemm::scale(values.data(), lanes, factor, values.data());
    gemm::narrow(values.data(), lanes, -128 - job.out_offset, 127 - job.out_offset, job.out_offset,
                 out.data() + pixel * lanes);
  }
  return out;
}

}  // namespace skillet::sim::rockchip
