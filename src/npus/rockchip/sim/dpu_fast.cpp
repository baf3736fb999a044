// The stages of most convolutions, whole pixels at a time: window correction, BS, BN, addition of a second operand,
// output converter. Other stages, and numbers that might not fit 32 bits between stages, are left to dpu_run.cpp.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>

#include "npus/rockchip/sim/dpu_job.h"
#include "simd/gemm.h"

namespace skillet::sim::rockchip {
namespace {

constexpr int64_t kAtom = 16;
constexpr unsigned kShiftMax = 61;  // of gemm::run_step

int64_t magnitude(const std::vector<int32_t>& values) {
  int64_t most = 0;
  for (const int32_t value : values) most = std::max(most, std::abs(int64_t{value}));
  return most;
}

gemm::Ties ties_of(Tie tie) {
  return tie == Tie::even ? gemm::Ties::even : tie == Tie::up ? gemm::Ties::up : gemm::Ties::away;
}

bool is_shift(unsigned shift, Tie tie) { return shift <= kShiftMax && tie != Tie::floor; }

// A stage for all lanes of a pixel.
struct LaneStep {
  std::vector<int32_t> addends, multipliers;  // empty: none
  gemm::Step how;

  bool does_nothing() const {
    return addends.empty() && multipliers.empty() && how.low == INT32_MIN && how.high == INT32_MAX;
  }
  void run(size_t lanes, int32_t* values) const {
    if (does_nothing()) return;
    gemm::Step step = how;
    if (!addends.empty()) step.addends = addends.data();
    if (!multipliers.empty()) step.multipliers = multipliers.data();
    gemm::run_step(step, lanes, values);
  }
};

class FastStages {
 public:
  FastStages(const DpuJob& job, const ConvJob& conv, const ConvSums& sums, const ChannelOperands& channels,
             std::span<const uint8_t> second)
      : job_(job), sums_(sums), channels_(channels), second_(second), lanes_(static_cast<size_t>(job.lanes)) {
    const int64_t products = conv.taps() * (conv.depthwise ? 1 : conv.lane_stride());
    const int64_t factor = magnitude(channels.b);
    bound_ = products * 128 * (128 + factor);
    corrects_ = factor != 0;
  }

  // Whether all stages can run this way.
  bool plan() {
    const std::vector<int32_t> addends(lanes_, job_.bn.alu_operand), multipliers(lanes_, job_.bn.multiplier);
    return bound_ <= INT32_MAX && add_stage(job_.bs, channels_.a, channels_.c, bs_) &&
           add_stage(job_.bn, addends, multipliers, bn_) && add_element_wise() && add_output();
  }

  std::vector<uint8_t> run() const {
    const auto pixels = static_cast<size_t>(job_.pixels());
    std::vector<uint8_t> out(pixels * lanes_);
    std::vector<int32_t> values(lanes_), operands(lanes_);
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      load(pixel, values.data());
      bs_.run(lanes_, values.data());
      bn_.run(lanes_, values.data());
      if (job_.ew.op != EwOp::none) add_operand(pixel, operands, values.data());
      gemm::run_step(output_, lanes_, values.data());
      gemm::narrow(values.data(), lanes_, -128 - job_.out_offset, 127 - job_.out_offset, job_.out_offset,
                   out.data() + pixel * lanes_);
    }
    return out;
  }

 private:
  // `bound_`: upper bound of all intermediate values.
  bool add_stage(const Stage& stage, const std::vector<int32_t>& addends, const std::vector<int32_t>& multipliers,
                 LaneStep& step) {
    if (stage.clamp_first || stage.narrow_products || (stage.multiply && stage.prelu)) return false;
    if (stage.alu) {
      const int64_t most = magnitude(addends);
      if (most > INT32_MAX) return false;  // its negative does not fit
      bound_ += most;
      step.addends = addends;
      if (stage.subtract) std::ranges::transform(addends, step.addends.begin(), std::negate());
    }
    if (stage.multiply) {
      if (bound_ > INT32_MAX || stage.shift != stage.shift_negative || !is_shift(stage.shift, stage.tie)) return false;
      bound_ = (bound_ * magnitude(multipliers) >> stage.shift) + 1;
      step.multipliers = multipliers;
      step.how.shift = static_cast<int>(stage.shift);
      step.how.ties = ties_of(stage.tie);
    }
    bound_ = std::min(bound_, int64_t{1} << 31);
    if (stage.relu) step.how.low = 0;
    if (stage.clamp) step.how.high = *stage.clamp;
    return true;
  }

  bool add_element_wise() {
    const ElementWise& ew = job_.ew;
    if (ew.op == EwOp::none) return true;
    if ((ew.op != EwOp::add && ew.op != EwOp::minus) || !is_shift(ew.shift, ew.tie)) return false;
    for (int byte = -128; byte < 128; ++byte) {
      const int64_t operand = convert_operand(ew, static_cast<int8_t>(byte));
      if (std::abs(operand) > INT32_MAX) return false;
      operand_of_[static_cast<uint8_t>(byte)] = static_cast<int32_t>(ew.op == EwOp::add ? operand : -operand);
    }
    const int64_t most = (int64_t{1} << (ew.bits - 1)) - 1;
    sum_.low = ew.relu ? 0 : static_cast<int32_t>(-most - 1);
    sum_.high = static_cast<int32_t>(ew.clamp ? std::min<int64_t>(most, *ew.clamp) : most);
    return true;
  }

  bool add_output() {
    output_ = {.multiplier = job_.out_scale, .shift = static_cast<int>(job_.out_shift), .ties = ties_of(job_.out_tie)};
    return is_shift(job_.out_shift, job_.out_tie) && std::abs(job_.out_offset) < 1 << 16;
  }

  // The CORE's output: sums, corrected by the window's sum.
  void load(size_t pixel, int32_t* values) const {
    const int32_t* const sum = sums_.sum.data() + pixel * lanes_;
    if (!corrects_) {
      std::copy_n(sum, lanes_, values);
      return;
    }
    const size_t step = job_.depthwise ? 1 : 0;
    gemm::multiply_add(sum, channels_.b.data(), sums_.window.data() + pixel * (job_.depthwise ? lanes_ : 1), step,
                       lanes_, values);
  }

  // The second operand is a cube: surfaces whose pixels are one atom each.
  void add_operand(size_t pixel, std::vector<int32_t>& operands, int32_t* values) const {
    const uint8_t* atom = second_.data() + pixel * kAtom;
    for (size_t lane = 0; lane < lanes_; lane += kAtom, atom += job_.pixels() * kAtom) {
      for (size_t i = 0; i < kAtom; ++i) operands[lane + i] = operand_of_[atom[i]];
    }
    gemm::Step step = sum_;
    step.addends = operands.data();
    gemm::run_step(step, lanes_, values);
  }

  const DpuJob& job_;
  const ConvSums& sums_;
  const ChannelOperands& channels_;
  const std::span<const uint8_t> second_;
  const size_t lanes_;
  int64_t bound_ = 0;
  bool corrects_ = false;
  LaneStep bs_, bn_;
  std::array<int32_t, 256> operand_of_{};
  gemm::Step sum_, output_;
};

bool has_fast_stages(const DpuJob& job, const ConvJob& conv, const Options& options) {
  return !job.lookup.on && conv.truncate == 0 && !options.offset_before_rounding &&
         !(options.cpend_plus_one_with_multiplier && job.channel_operands > 1);
}

}  // namespace

std::optional<std::vector<uint8_t>> run_stages_fast(const DpuJob& job, const ConvJob& conv, const ConvSums& sums,
                                                    const ChannelOperands& channels, std::span<const uint8_t> second,
                                                    const Options& options) {
  if (!has_fast_stages(job, conv, options)) return std::nullopt;
  FastStages stages(job, conv, sums, channels, second);
  if (!stages.plan()) return std::nullopt;
  return stages.run();
}

}  // namespace skillet::sim::rockchip
