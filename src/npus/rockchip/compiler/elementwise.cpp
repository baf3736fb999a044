#include "npus/rockchip/compiler/elementwise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/is_any_of.h"
#include "graph/ref/all_bytes.h"
#include "npus/rockchip/compiler/numerics.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int32_t kDiagonal = 127;

Plane plane_of_tensor(const ir::Tensor& tensor) { return plane_of(tensor.shape); }

// The same sum, whichever operand is the main one.
Result<Conv> make_even_sum(const ir::Tensor& main, const ir::Tensor& other, const ir::Tensor& to, int32_t sign,
                           const SumGains& gains, ir::Activation activation, const Tuning& tuning) {
  Conv conv = flat_diagonal(plane_of_tensor(main), 1, tuning);
  const float unit = std::ldexp(to.quant.scale(), -gains.step_log2);
  SK_TRY(set_values(main, to, {}, {.product = unit}, activation, tuning, conv));
  conv.multipliers.assign(static_cast<size_t>(conv.out.channels), static_cast<int16_t>(sign * gains.main));
  conv.multiplier_shift = 0;
  conv.out_gain = power_of_two(gains.step_log2);
  conv.addition = Addition{.offset = kWeightZero - unsigned_zero(other), .gain = {gains.other, 0}};
  conv.addition->clamp = std::exchange(conv.clamp, {});
  return conv;
}

}  // namespace

SumScales sum_scales(const ir::Graph& graph, const ir::Op& op) {
  const auto scale = [&](size_t i) { return graph.tensor(op.inputs[i]).quant.scale(); };
  // Only the main operand can be negated: of SUB it is always the second.
  const size_t main = op.kind == ir::OpKind::sub || scale(1) < scale(0) ? 1 : 0;
  const float unit = scale(main) / kDiagonal;
  return {main, unit, scale(1 - main) / unit};
}

Result<Conv> make_sum(const ir::Tensor& main, const ir::Tensor& other, const ir::Tensor& to, int32_t sign,
                      ir::Activation activation, const Tuning& tuning) {
  const double step = to.quant.scale();
  const auto gains = sum_gains(main.quant.scale() / step, other.quant.scale() / step);
  if (tuning.fused_additions && gains) return make_even_sum(main, other, to, sign, *gains, activation, tuning);
  Conv conv = flat_diagonal(plane_of_tensor(main), sign * kDiagonal, tuning);
  const float unit = main.quant.scale() / kDiagonal;
  SK_TRY(set_values(main, to, {}, {.product = unit}, activation, tuning, conv));
  SK_TRY_ASSIGN(conv.addition, addition_of(other, unit, tuning));
  conv.addition->clamp = std::exchange(conv.clamp, {});
  return conv;
}

Product product_of(const ir::Graph& graph, const ir::Op& op) {
  const auto factor = [&](size_t main) {
    const ir::Tensor &one = graph.tensor(op.inputs[main]), &other = graph.tensor(op.inputs[1 - main]);
    const Plane plane = plane_of(one.shape), factors = plane_of(other.shape);
    const bool channels = factors.pixels() == 1 && factors.channels == plane.channels;
    if (other.is_constant() && (other.shape.elems() == 1 || (channels && images_of(other.shape) == 1)))
      return Factor::constant;
    if (one.is_constant() || other.is_constant()) return Factor::none;
    if (one.shape == other.shape) return Factor::element;
    return channels && images_of(other.shape) == 1 ? Factor::pixel : Factor::none;
  };
  for (const size_t main : {size_t{0}, size_t{1}}) {
    if (const Factor found = factor(main); found != Factor::none) return {found, main};
  }
  return {};
}

namespace {

// Weights from the factor: a weight for each channel, or the same for all.
Conv weighted(const ir::Tensor& main, const ir::Tensor& factor) {
  const Plane plane = plane_of_tensor(main);
  Conv conv{.in = plane, .out = plane, .depthwise = true};
  const auto channels = static_cast<size_t>(plane.channels);
  Bytes weights(channels);
  for (size_t c = 0; c < channels; ++c) weights[c] = factor.data[factor.data.size() == 1 ? 0 : c];
  conv.weights = std::move(weights);
  conv.weight_flip = factor.dtype == ir::DType::int8 ? 0x80 : 0;
  conv.weight_zero = unsigned_zero(factor);
  return conv;
}

// Repeats the factor's one pixel for each pixel of the image.
Conv spread(const ir::Tensor& factor, const ir::Tensor& image, const Tuning& tuning) {
  const Plane plane = plane_of_tensor(image);
  const Plane column{static_cast<int32_t>(plane.pixels()), 1, plane_of_tensor(factor).channels};
  Conv conv = constant_depthwise({.in = column, .out = column, .depthwise = true}, {}, tuning);
  conv.in = conv.out = column;  // sets both again, whatever the tuning did with rows and columns
  conv.repeated = true;
  return conv;
}

}  // namespace

Result<Conv> make_product(const Product& product, const ir::Tensor& main, const ir::Tensor& factor,
                          const ir::Tensor& to, ir::Activation activation, const Tuning& tuning) {
  const Scales scales{.product = main.quant.scale() * factor.quant.scale()};
  if (product.factor == Factor::constant) {
    Conv conv = weighted(main, factor);
    SK_TRY(set_values(main, to, {}, scales, activation, tuning, conv));
    return conv;
  }
  const bool spreads = product.factor == Factor::pixel;
  const ir::Tensor &first = spreads ? factor : main, &second = spreads ? main : factor;
  Conv conv = spreads ? spread(factor, main, tuning) : flat_diagonal(plane_of_tensor(main), 1, tuning);
  SK_TRY(set_values(first, to, {}, scales, activation, tuning, conv));
  conv.addition = Addition{.multiplies = true,
                           .offset = kWeightZero - unsigned_zero(second),
                           .gain = {1, 0},
                           .clamp = std::exchange(conv.clamp, {})};
  return conv;
}

ir::Tensor positive_part(const ir::Tensor& from) {
  ir::Tensor positive = from;
  positive.quant.zero_points = {from.dtype == ir::DType::int8 ? -128 : 0};
  return positive;
}

bool is_leaky_sum(const ir::Tensor& from, const ir::Tensor& to, float alpha) {
  constexpr float kLeast = 1.0F / 256, kUnitMax = 0.25F;
  return alpha >= kLeast && alpha < 1 && alpha * from.quant.scale() / kDiagonal <= kUnitMax * to.quant.scale();
}

Result<Conv> make_leaky_sum(const ir::Tensor& from, const ir::Tensor& positive, const ir::Tensor& to, float alpha,
                            const Tuning& tuning) {
  Conv conv = flat_diagonal(plane_of_tensor(from), kDiagonal, tuning);
  const float unit = from.quant.scale() * alpha / kDiagonal;
  SK_TRY(set_values(from, to, {}, {.product = unit}, ir::Activation::none, tuning, conv));
  ir::Tensor other = positive;
  other.quant.scales = {positive.quant.scale() * (1 - alpha)};
  SK_TRY_ASSIGN(conv.addition, addition_of(other, unit, tuning));
  return conv;
}

bool is_table(ir::OpKind kind) {
  return is_any_of(kind, {ir::OpKind::relu_n1_to_1, ir::OpKind::abs, ir::OpKind::logistic, ir::OpKind::tanh,
                          ir::OpKind::hard_swish, ir::OpKind::elu, ir::OpKind::byte_table, ir::OpKind::exp});
}

Result<std::array<int8_t, 256>> table_of(const ir::Graph& graph, const ir::Op& op) {
  SK_TRY_ASSIGN(const Bytes results, ref::of_each_byte(graph, {&op, 1}, op.inputs[0], op.outputs[0]));
  const auto flip = [&](ir::TensorId id) { return graph.tensor(id).dtype == ir::DType::int8 ? 0 : 0x80; };
  std::array<int8_t, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const auto byte = static_cast<uint8_t>((static_cast<int>(i) - 128) ^ flip(op.inputs[0]));
    table[i] = static_cast<int8_t>(results[byte] ^ flip(op.outputs[0]));
  }
  return table;
}

}  // namespace skillet::npus::rockchip
