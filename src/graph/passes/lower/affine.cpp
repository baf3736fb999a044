#include "graph/passes/lower/affine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/passes/lower/pointwise.h"
#include "graph/ref/all_bytes.h"

namespace skillet::passes {
namespace {

using ir::Activation;
using ir::OpKind;

// value * slope + offset, in real units, by channel. `own`: the model's constant factors, if there are any and each
// fits a weight.
struct Affine {
  std::vector<double> slopes, offsets;
  Activation activation = Activation::none;
  std::vector<int32_t> own;
  float own_scale = 0;
};

std::optional<Activation> clamp_of(OpKind kind) {
  switch (kind) {
    case OpKind::quantize: return Activation::none;
    case OpKind::relu: return Activation::relu;
    case OpKind::relu6: return Activation::relu6;
    case OpKind::relu_n1_to_1: return Activation::relu_n1_to_1;
    default: return std::nullopt;
  }
}

bool has_constant(OpKind kind) { return kind == OpKind::mul || kind == OpKind::add || kind == OpKind::sub; }

void take_in(const Rewriter& rewriter, const ir::Op& op, Affine& all) {
  if (const auto clamp = clamp_of(op.kind)) {
    if (*clamp != Activation::none) all.activation = *clamp;
    return;
  }
  const size_t input = rewriter.tensor(op.inputs[0]).is_constant() ? 1 : 0;
  const ir::Tensor& constant = rewriter.tensor(op.inputs[1 - input]);
  const std::vector<int32_t> values = by_channel(constant, static_cast<int32_t>(all.slopes.size()));
  const double scale = constant.quant.scale();
  for (size_t c = 0; c < all.slopes.size(); ++c) {
    const double value = values[c] * scale;
    const double times = op.kind == OpKind::mul ? value : op.kind == OpKind::sub && input == 1 ? -1 : 1;
    all.slopes[c] *= times;
    all.offsets[c] *= times;
    if (op.kind != OpKind::mul) all.offsets[c] += op.kind == OpKind::sub && input == 0 ? -value : value;
  }
  const auto [least, most] = std::ranges::minmax(values);
  if (op.kind == OpKind::mul && all.own.empty() && most - least <= 255)
    all.own = values, all.own_scale = constant.quant.scale();
  const Activation activation = op.as<ir::ActivationAttrs>().activation;
  if (activation != Activation::none) all.activation = activation;
}

Factors factors_of(const Affine& all, const ir::Tensor& from, bool as_own) {
  Factors out{.weights = {}, .biases = {}, .activation = all.activation};
  if (from.dtype == ir::DType::uint8) out.weight_zero = 128;
  double largest = 0;
  for (const double slope : all.slopes) largest = std::max(largest, std::abs(slope));
  out.scale = as_own ? all.own_scale : largest > 0 ? static_cast<float>(largest / 127) : 1.0F;
  for (size_t c = 0; c < all.slopes.size(); ++c) {
    out.weights.push_back(as_own ? all.own[c] : static_cast<int32_t>(std::lround(all.slopes[c] / out.scale)));
    const double bias = all.offsets[c] / (double{from.quant.scale()} * out.scale);
    if (!(std::abs(bias) < 1 << 22)) return {};
    out.biases.push_back(static_cast<int32_t>(std::lround(bias)));
  }
  return out;
}

struct Ends {
  double low = 0, high = 0;
};
Ends ends_of(const ir::Tensor& to, Activation activation) {
  const double lowest = lowest_of(to.dtype), zero = to.quant.zero_point(), scale = to.quant.scale();
  Ends out{lowest, lowest + 255};
  const auto limit = [&](double low, double high) {
    out = {std::max(out.low, zero + std::round(low / scale)), std::min(out.high, zero + std::round(high / scale))};
  };
  if (activation == Activation::relu) out.low = std::max(out.low, zero);
  if (activation == Activation::relu6) limit(0, 6);
  if (activation == Activation::relu_n1_to_1) limit(-1, 1);
  return out;
}

// Checks the factors against the ops' results for every byte.
bool is_within_a_step(const Bytes& wanted, const Factors& factors, const ir::Tensor& from, const ir::Tensor& to) {
  const double multiplier = conv_multiplier(from, factors.scale, to);
  const Ends ends = ends_of(to, factors.activation);
  if (!std::isnormal(multiplier) || multiplier >= 1 || ends.low > ends.high) return false;
  return all_round_within_a_step(wanted, from, [&](size_t c, int in) {
    const double sum = static_cast<double>(factors.weights[c]) * in + factors.biases[c];
    return std::clamp(sum * multiplier + to.quant.zero_point(), ends.low, ends.high);
  });
}

bool is_image(const ir::Shape& shape) { return shape.rank() == 4; }

// Of each pixel the one channel becomes several, by a constant with a value for each.
bool widens(const ir::Shape& from, const ir::Shape& to) {
  return from.rank() >= 1 && from.rank() == to.rank() && from.back(0) == 1 && to.back(0) > 1 &&
         std::equal(from.dims.begin(), from.dims.end() - 1, to.dims.begin());
}

ir::TensorId as_image_of(Rewriter& rewriter, ir::TensorId id) {
  const ir::Shape shape = rewriter.tensor(id).shape;
  if (is_image(shape)) return id;
  const int32_t channels = shape.back(0), pixels = static_cast<int32_t>(shape.elems() / channels);
  return rewriter.add_like(rewriter.tensor(id), "/image", as_image(pixels, channels));
}

}  // namespace

ir::TensorId affine_input(const Rewriter& rewriter, const ir::Op& op) {
  if (op.inputs.empty() || op.inputs[0] == ir::kNoTensor || op.outputs.size() != 1) return ir::kNoTensor;
  if (clamp_of(op.kind)) return op.inputs[0];
  if (!has_constant(op.kind) || op.inputs.size() != 2 || op.inputs[1] == ir::kNoTensor) return ir::kNoTensor;
  const size_t input = rewriter.tensor(op.inputs[0]).is_constant() ? 1 : 0;
  const ir::Tensor &from = rewriter.tensor(op.inputs[input]), &other = rewriter.tensor(op.inputs[1 - input]);
  const ir::Shape& to = rewriter.tensor(op.outputs[0]).shape;
  if (from.shape.rank() < 1 || from.shape.back(0) < 1 || other.dtype != from.dtype ||
      by_channel(other, widens(from.shape, to) ? to.back(0) : from.shape.back(0)).empty())
    return ir::kNoTensor;
  return op.inputs[input];
}

std::vector<ir::Op> affine_within_a_step(Rewriter& rewriter, const std::vector<ir::Op>& ops) {
  const ir::TensorId from_id = affine_input(rewriter, ops.front()), to_id = ops.back().outputs[0];
  const ir::Tensor from = rewriter.tensor(from_id), to = rewriter.tensor(to_id);
  const int64_t channels = to.shape.rank() < 1 ? 0 : to.shape.back(0);
  if (!is_computed_byte(from) || !is_computed_byte(to) || from.dtype != to.dtype ||
      (from.shape != to.shape && !widens(from.shape, to.shape)) || from.shape.elems() < 1 || from.shape.rank() > 4 ||
      channels * channels > kDenseBytesMax)
    return {};
  const auto wanted = ref::of_all_bytes(rewriter.graph(), ops, from_id, to_id);
  if (!wanted.ok()) return {};
  Affine all;
  all.slopes.assign(static_cast<size_t>(channels), 1);
  all.offsets.assign(static_cast<size_t>(channels), 0);
  for (const ir::Op& op : ops) take_in(rewriter, op, all);
  const auto muls = std::ranges::count(ops, OpKind::mul, &ir::Op::kind);
  // First tries weights around zero, which all chips support.
  const bool is_narrow = std::ranges::all_of(all.own, [](int32_t one) { return std::abs(one) <= 127; });
  for (const bool as_own : {is_narrow, !is_narrow}) {
    if (as_own && (muls != 1 || all.own.empty())) continue;
    const Factors factors = factors_of(all, from, as_own);
    if (factors.biases.empty() || !is_within_a_step(*wanted, factors, from, to)) continue;
    const ir::TensorId in = as_image_of(rewriter, from_id), out = as_image_of(rewriter, to_id);
    auto op = pointwise(rewriter, in, out, factors);
    if (!op) continue;
    std::vector<ir::Op> by;
    if (in != from_id) by.push_back(rewriter.reshape(from_id, in));
    by.push_back(std::move(*op));
    if (out != to_id) by.push_back(rewriter.reshape(out, to_id));
    return by;
  }
  return {};
}

std::string_view affine_name(const std::vector<ir::Op>& made) {
  return ir::op_name(*std::ranges::find_if(made, [](const ir::Op& op) { return op.kind != OpKind::reshape; }));
}

}  // namespace skillet::passes
