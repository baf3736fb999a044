#include "graph/passes/lower/pointwise.h"

#include <algorithm>
#include <utility>

#include "base/is_any_of.h"

namespace skillet::passes {
namespace {

// The zero point of -x is equally far from the other end of the range.
ir::Tensor negated(const ir::Tensor& one) {
  ir::Tensor out = one;
  out.name += "/negated";
  out.quant.zero_points[0] = 2 * lowest_of(one.dtype) + 255 - one.quant.zero_point();
  return out;
}

}  // namespace

int32_t lowest_of(ir::DType dtype) { return dtype == ir::DType::int8 ? -128 : 0; }

bool is_of_two_operands(const ir::Op& op) {
  using enum ir::OpKind;
  return is_any_of(op.kind, {add, sub, mul, maximum, minimum}) && op.inputs.size() == 2 &&
         op.inputs[0] != ir::kNoTensor && op.inputs[1] != ir::kNoTensor;
}

bool has_exact_steps(const ir::Tensor& tensor) {
  constexpr float kLeast = 1e-30F, kMost = 1e30F;  // ADD multiplies by 2^20
  return tensor.quant.scale() > kLeast && tensor.quant.scale() < kMost;
}

Factors ones(int32_t channels, int32_t sign) {
  return {.weights = std::vector<int32_t>(static_cast<size_t>(channels), sign * kFine),
          .biases = {},
          .scale = 1.0F / kFine};
}

std::vector<int32_t> by_channel(const ir::Tensor& tensor, int32_t channels) {
  const int64_t count = tensor.shape.elems();
  if (!tensor.is_constant() || !ir::is_8bit(tensor.dtype) || tensor.quant.scales.size() != 1 ||
      (count != 1 && (count != channels || tensor.shape.back(0) != channels)))
    return {};
  std::vector<int32_t> out;
  for (int32_t i = 0; i < channels; ++i) {
    const uint8_t byte = tensor.data[count == 1 ? 0 : static_cast<size_t>(i)];
    const int32_t value = tensor.dtype == ir::DType::int8 ? static_cast<int8_t>(byte) : byte;
    out.push_back(value - tensor.quant.zero_point());
  }
  return out;
}

bool is_pointwise(const ir::Tensor& from, const ir::Tensor& to) {
  return is_computed_byte(from) && is_computed_byte(to) && from.dtype == to.dtype && from.shape == to.shape &&
         from.shape.rank() == 4 && int64_t{from.shape[3]} * from.shape[3] <= kDenseBytesMax && from.shape.elems() > 0;
}

std::optional<ir::Op> pointwise(Rewriter& rewriter, ir::TensorId from_id, ir::TensorId to_id, Factors factors) {
  const ir::Tensor from = rewriter.tensor(from_id), to = rewriter.tensor(to_id);
  const int32_t lowest = lowest_of(from.dtype);
  const auto [least, most] = std::ranges::minmax(factors.weights);
  if (least + factors.weight_zero < lowest || most + factors.weight_zero > lowest + 255) {
    // TensorFlow Lite assumes zero point 0 for int8 filters.
    if (most - least > 255 || (from.dtype == ir::DType::int8 && rewriter.for_files())) return std::nullopt;
    factors.weight_zero = std::clamp(lowest - least, lowest, lowest + 255);
    if (most + factors.weight_zero > lowest + 255) return std::nullopt;
  }
  Bytes bytes;
  for (const int32_t weight : factors.weights) bytes.push_back(static_cast<uint8_t>(weight + factors.weight_zero));
  const auto channels = static_cast<int32_t>(factors.weights.size());
  const ir::ConvAttrs attrs{.padding = ir::Padding::valid, .activation = factors.activation};
  const bool widens = from.shape.back(0) != channels;
  ir::Op op{.kind = widens ? ir::OpKind::conv_2d : ir::OpKind::depthwise_conv_2d, .attrs = attrs};
  op.inputs = {from_id,
               rewriter.add_constant(to.name + "/factors", from.dtype,
                                     widens ? ir::Shape{channels, 1, 1, 1} : ir::Shape{1, 1, 1, channels},
                                     std::move(bytes), {{factors.scale}, {factors.weight_zero}, 0}),
               ir::kNoTensor};
  if (!factors.biases.empty())
    op.inputs[2] = rewriter.add_ints(to.name + "/offsets", factors.biases, {channels},
                                     {{from.quant.scale() * factors.scale}, {0}, 0});
  op.outputs = {to_id};
  return op;
}

ir::Tensor ending_at_zero(const ir::Tensor& one, std::string_view name, bool above) {
  ir::Tensor out = one;
  out.name += name;
  out.quant.zero_points[0] = lowest_of(one.dtype) + (above ? 255 : 0);
  return out;
}

ir::Op sum_of(ir::TensorId a, ir::TensorId b, ir::TensorId to) {
  return {.kind = ir::OpKind::add, .attrs = ir::ActivationAttrs{}, .inputs = {a, b}, .outputs = {to}};
}

std::vector<ir::Op> difference(Rewriter& rewriter, bool by_add, ir::TensorId a, ir::TensorId b, ir::TensorId to) {
  if (!by_add) {
    ir::Op op = sum_of(a, b, to);
    op.kind = ir::OpKind::sub;
    return {std::move(op)};
  }
  const ir::TensorId minus = rewriter.add(negated(rewriter.tensor(b)));
  auto negation = pointwise(rewriter, b, minus, ones(rewriter.tensor(b).shape.back(0), -1));
  if (!negation) return {};
  return {std::move(*negation), sum_of(a, minus, to)};
}

std::vector<ir::Op> larger(Rewriter& rewriter, bool by_add, ir::TensorId a, ir::TensorId b, ir::TensorId to,
                           bool smaller) {
  const ir::TensorId more = rewriter.add(ending_at_zero(rewriter.tensor(to), "/difference", smaller));
  std::vector<ir::Op> ops = difference(rewriter, by_add, a, b, more);
  if (!ops.empty()) ops.push_back(sum_of(b, more, to));
  return ops;
}

}  // namespace skillet::passes
