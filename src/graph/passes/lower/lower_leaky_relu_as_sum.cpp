// LEAKY_RELU and PRELU become a sum of the operand and of what a slope below 1 adds to values below zero: a 1x1
// depthwise convolution whose type ends at zero. Where that is not within a step, or must be exact, they become the sum
// of two parts: the values above zero, and the values below it times their slope, each such a convolution. One part is
// always zero, so that sum adds no rounding. All bytes are tested with the CPU kernels. Where the chip takes the op as
// one job, such as a table, it keeps it: that is faster.
#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/passes/lower/pointwise.h"
#include "graph/ref/all_bytes.h"

namespace skillet::passes {
namespace {

// The factors below zero; no weights: the op has none.
Factors slopes_of(const Rewriter& rewriter, const ir::Op& op, int32_t channels) {
  if (op.kind == ir::OpKind::prelu) {
    const ir::Tensor& alpha = rewriter.tensor(op.inputs[1]);
    Factors out{.weights = by_channel(alpha, channels), .biases = {}};
    if (!out.weights.empty()) out.scale = alpha.quant.scale();
    return out;
  }
  const float alpha = op.as<ir::LeakyReluAttrs>().alpha;
  if (!std::isfinite(alpha)) return {};
  const int32_t weight = alpha == 0 ? 0 : alpha < 0 ? -kFine : kFine;
  Factors out{.weights = std::vector<int32_t>(static_cast<size_t>(channels), weight), .biases = {}};
  if (alpha != 0) out.scale = std::abs(alpha) / kFine;
  return std::isnormal(out.scale) ? out : Factors{};
}

// Adds the parts of each channel above and below zero. Slopes that change the sign also give positive values.
class Sum {
 public:
  Sum(Rewriter& rewriter, ir::TensorId from, ir::TensorId to) : rewriter_(rewriter), from_(from), to_(to) {}

  // Returns false if a weight does not fit a byte.
  bool add(Factors factors, bool below) {
    const ir::TensorId part = like(below ? "/below" : "/above", below);
    auto op = pointwise(rewriter_, from_, part, std::move(factors));
    if (!op) return false;
    ops_.push_back(std::move(*op));
    if (sum_ == ir::kNoTensor) {
      sum_ = part;
      return true;
    }
    const ir::TensorId sum = below ? to_ : like("/sum", false);
    ops_.push_back({.kind = ir::OpKind::add, .attrs = ir::ActivationAttrs{}, .inputs = {sum_, part}});
    ops_.back().outputs = {sum};
    sum_ = sum;
    return true;
  }
  std::vector<ir::Op> take() { return std::move(ops_); }

 private:
  ir::TensorId like(std::string_view name, bool above) {
    return rewriter_.add(ending_at_zero(rewriter_.tensor(to_), name, above));
  }

  Rewriter& rewriter_;
  const ir::TensorId from_, to_;
  ir::TensorId sum_ = ir::kNoTensor;
  std::vector<ir::Op> ops_;
};

// Compares the op's result for each byte with unrounded(channel, steps from the zero point of its operand), which is in
// steps of the result from its zero point.
template <typename Unrounded>
bool is_within_a_step(const Rewriter& rewriter, const ir::Op& op, Unrounded unrounded) {
  const ir::Tensor& to = rewriter.tensor(op.outputs[0]);
  const auto wanted = ref::of_all_bytes(rewriter.graph(), std::vector<ir::Op>{op}, op.inputs[0], op.outputs[0]);
  if (!wanted.ok()) return false;
  const double low = lowest_of(to.dtype);
  return all_round_within_a_step(*wanted, rewriter.tensor(op.inputs[0]), [&](size_t channel, int in) {
    return std::clamp(unrounded(channel, in) + to.quant.zero_point(), low, low + 255);
  });
}

double steps_of(const Rewriter& rewriter, ir::TensorId from, const ir::Op& op) {
  return double{rewriter.tensor(from).quant.scale()} / rewriter.tensor(op.outputs[0]).quant.scale();
}

// The operand, and (slope - 1) times what is below zero. Empty: the two roundings could add up to more than a step.
std::vector<ir::Op> with_correction(Rewriter& rewriter, const ir::Op& old, const Factors& slopes) {
  constexpr int32_t kMost = 255;  // of a byte; chips add with weights of 255ths
  const ir::Tensor from = rewriter.tensor(old.inputs[0]);
  const auto [least, most] = std::ranges::minmax(slopes.weights);
  const double largest = 1 - least * double{slopes.scale};
  const double steps = std::ceil(largest * (from.quant.zero_point() - lowest_of(from.dtype)));
  if (!rewriter.may_be_off() || most * double{slopes.scale} > 1 || steps < 1 || steps > kMost) return {};
  ir::Tensor more = ending_at_zero(rewriter.tensor(old.outputs[0]), "/more", false);
  more.quant.scales = {static_cast<float>(from.quant.scale() * steps / kMost)};
  Factors factors{.weights = {}, .biases = {}, .scale = static_cast<float>(largest / kMost)};
  for (const int32_t slope : slopes.weights)
    factors.weights.push_back(static_cast<int32_t>(std::lround((slope * double{slopes.scale} - 1) / factors.scale)));
  const ir::TensorId part = rewriter.add(std::move(more));
  const double step = steps_of(rewriter, old.inputs[0], old), part_step = steps_of(rewriter, part, old);
  for (const double rounding : {-0.5, 0.5}) {
    const auto unrounded = [&](size_t channel, int in) {
      return in * step + (in < 0 ? in * factors.weights[channel] * factors.scale * step + rounding * part_step : 0);
    };
    if (!is_within_a_step(rewriter, old, unrounded)) return {};
  }
  auto op = pointwise(rewriter, old.inputs[0], part, std::move(factors));
  if (!op) return {};
  return {std::move(*op), sum_of(old.inputs[0], part, old.outputs[0])};
}

}  // namespace

void lower_leaky_relu_as_sum(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::leaky_relu && old.kind != ir::OpKind::prelu) return;
  const ir::TensorId from = old.inputs[0], to = old.outputs[0];
  const ir::Tensor in = rewriter.tensor(from), out = rewriter.tensor(to);
  if (!is_pointwise(in, out) || rewriter.level(id) != Level::refused) return;  // one table is one job
  const Factors slopes = slopes_of(rewriter, old, in.shape[3]);
  if (slopes.weights.empty()) return;
  if (std::vector<ir::Op> ops = with_correction(rewriter, old, slopes); !ops.empty()) {
    std::string text = fmt::format("{} becomes DEPTHWISE_CONV_2D 1x1 and ADD", ir::op_name(old));
    if (rewriter.replace(id, std::move(ops), std::move(text), 1)) return;
  }
  rewriter.drop();
  Factors falling = slopes, rising = slopes;
  for (int32_t& weight : falling.weights) weight = std::min(weight, 0);
  for (int32_t& weight : rising.weights) weight = std::max(weight, 0);
  const bool falls = falling.weights != std::vector<int32_t>(falling.weights.size(), 0);
  Sum sum(rewriter, from, to);
  if (!sum.add(ones(in.shape[3]), false) || (falls && !sum.add(falling, false)) || !sum.add(rising, true))
    return rewriter.drop();
  std::vector<ir::Op> ops = sum.take();
  const bool is_same = rewriter.same_bytes({old}, ops, from, to);
  const auto unrounded = [&, step = steps_of(rewriter, from, old)](size_t channel, int steps) {
    return steps * (steps > 0 ? 1 : slopes.weights[channel] * double{slopes.scale}) * step;
  };
  if (!is_same && !(rewriter.may_be_off() && is_within_a_step(rewriter, old, unrounded))) return rewriter.drop();
  std::string text =
      fmt::format("{} becomes the ADD of {} DEPTHWISE_CONV_2D 1x1", ir::op_name(old), falls ? "three" : "two");
  rewriter.replace(id, std::move(ops), std::move(text), is_same ? 0 : 1);
}

}  // namespace skillet::passes
