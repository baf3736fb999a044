// A convolution with RELU6 whose type reaches beyond 6, for chips that clamp results only at the ends of their type: it
// writes a type that ends at 6, which is finer, and a 1x1 depthwise convolution rescales that to the model's type.
// Within a step: before rounding both results are the same, the CPU's rounding takes at most three quarters of a step,
// and the chip's take half a finer step, half a step, and a little for its short multipliers. If scales are merged, the
// first result may be a step off too, so that case needs `approximate`.
#include <cmath>
#include <utility>

#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

constexpr float kSixEnds = 6.0F / 255;

bool is_of_one_scale(const ir::Quant& quant) { return !quant.empty() && ir::all_equal(quant.scales); }

}  // namespace

void tighten_relu6(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if ((op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d) || !rewriter.may_be_off() ||
      op.as<ir::ConvAttrs>().activation != ir::Activation::relu6 ||
      !(rewriter.may_merge_scales() || is_of_one_scale(rewriter.tensor(op.inputs[1]).quant)))
    return;
  const ir::TensorId to = op.outputs[0];
  ir::Tensor tight = rewriter.tensor(to);
  if (!is_pointwise(tight, tight) || !(tight.quant.scale() > kSixEnds) || !(tight.quant.scale() < 1) ||
      rewriter.level(id) != Level::refused)
    return;
  tight.name += "/to6";
  tight.quant.scales = {kSixEnds};
  tight.quant.zero_points = {lowest_of(tight.dtype)};
  const ir::TensorId between = rewriter.add(std::move(tight));
  Factors factors = ones(rewriter.tensor(to).shape[3]);
  if (rewriter.tensor(to).dtype == ir::DType::uint8) factors.weight_zero = 128;
  auto rescaled = pointwise(rewriter, between, to, std::move(factors));
  if (!rescaled) return rewriter.drop();
  op.outputs = {between};
  std::string text =
      fmt::format("{} with RELU6 writes a type that ends at 6, and DEPTHWISE_CONV_2D 1x1", ir::op_name(op));
  rewriter.replace(
      {.ops = {id}, .kept = id, .by = {std::move(op), std::move(*rescaled)}, .text = std::move(text), .off = 1});
}

}  // namespace skillet::passes
