// Operations element by element, in float or integer, and repetition.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "frontend/onnx/file_ops.h"
#include "graph/ir/rules.h"

namespace skillet::onnx {
using ir::OpKind;
using ir::TensorId;

TensorId floats(Lowering& l, const std::vector<float>& values, std::vector<int32_t> dims) {
  Bytes bytes(values.size() * 4);
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return l.constant(ir::DType::float32, std::move(dims), std::move(bytes));
}
TensorId number(Lowering& l, float value) { return floats(l, {value}, {}); }

Result<void> needs_float(Lowering& l) {
  if (l.input(0) != nullptr && l.model().value(l.input(0)->value).dtype == ir::DType::float32) return {};
  return error(ErrorCode::unsupported, "it is not of float32");
}

Result<InOut> in_out(Lowering& l, std::optional<Layout> layout) {
  InOut out;
  SK_TRY_ASSIGN(out.dims, l.input_dims(0));
  out.layout = layout.value_or(l.common_layout(out.dims.size()));
  SK_TRY_ASSIGN(out.from, l.read(0, out.layout));
  SK_TRY_ASSIGN(out.to, l.write(0, out.layout));
  return out;
}
TensorId like(Lowering& l, TensorId of) {
  return l.temporary_of(l.graph.tensor(of).dtype, l.graph.tensor(of).shape.dims);
}

TensorId arithmetic(Lowering& l, OpKind kind, TensorId a, TensorId b, TensorId to) {
  l.emit(kind, ir::ActivationAttrs{}, {a, b}, to);
  return to;
}

namespace {

template <OpKind kind>
Result<void> unary(Lowering& l) {
  SK_TRY_ASSIGN(const InOut io, in_out(l));
  l.emit(kind, ir::NoAttrs{}, {io.from}, io.to);
  return {};
}

Result<void> leaky_relu(Lowering& l) {
  SK_TRY_ASSIGN(const InOut io, in_out(l));
  l.emit(OpKind::leaky_relu, ir::LeakyReluAttrs{.alpha = float_of(l.node(), "alpha", 0.01F)}, {io.from}, io.to);
  return {};
}

Result<void> gelu(Lowering& l) {
  SK_TRY_ASSIGN(const InOut io, in_out(l));
  l.emit(OpKind::gelu, ir::GeluAttrs{.approximate = string_of(l.node(), "approximate", "none") == "tanh"}, {io.from},
         io.to);
  return {};
}

// A limit of Clip: the number of an attribute or a constant; empty if it is computed.
Result<std::optional<float>> limit_of(Lowering& l, size_t input, float otherwise) {
  if (l.input(input) == nullptr) return std::optional(otherwise);
  const Value& value = l.model().value(l.input(input)->value);
  SK_TRY_ASSIGN(const auto dims, l.input_dims(input));
  const auto read = value.is_constant ? numbers(value) : std::nullopt;
  if (ir::Shape{dims}.elems() != 1 || (value.is_constant && !read))
    return error(ErrorCode::unsupported, "its limits are not numbers");
  return read ? std::optional(static_cast<float>(read->front())) : std::nullopt;
}

Result<void> clip(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const auto low, limit_of(l, 1, float_of(l.node(), "min", -INFINITY)));
  SK_TRY_ASSIGN(const auto high, limit_of(l, 2, float_of(l.node(), "max", INFINITY)));
  std::array<TensorId, 2> computed = {ir::kNoTensor, ir::kNoTensor};
  if (!low) SK_TRY_INTO(computed[0], l.read(1, Layout::plain));
  if (!high) SK_TRY_INTO(computed[1], l.read(2, Layout::plain));
  SK_TRY_ASSIGN(const InOut io, in_out(l));
  if (low == 0.0F && high == 6.0F) {
    l.emit(OpKind::relu6, ir::NoAttrs{}, {io.from}, io.to);
    return {};
  }
  const TensorId above = like(l, io.from);
  l.emit(OpKind::maximum, ir::NoAttrs{}, {io.from, low ? number(l, *low) : computed[0]}, above);
  l.emit(OpKind::minimum, ir::NoAttrs{}, {above, high ? number(l, *high) : computed[1]}, io.to);
  return {};
}

// Operands in `layout` if all have the same rank; else in the file's layout, for which broadcasting is defined.
Result<std::vector<TensorId>> operands(Lowering& l, Layout& layout) {
  size_t rank = 0;
  bool fits = true;
  for (size_t i = 0; i < l.unit().inputs.size(); ++i) {
    SK_TRY_ASSIGN(const auto dims, l.input_dims(i));
    if (rank != 0 && dims.size() != rank) fits = false;
    rank = std::max(rank, dims.size());
  }
  layout = fits ? l.common_layout(rank) : Layout::plain;
  std::vector<TensorId> out;
  for (size_t i = 0; i < l.unit().inputs.size(); ++i) SK_TRY_INTO(out.emplace_back(), l.read(i, layout));
  return out;
}

Result<void> of_all(Lowering& l, OpKind kind, size_t count) {
  if (count != 0 && l.unit().inputs.size() != count)
    return error(ErrorCode::unsupported, "it has {} inputs, not {}", l.unit().inputs.size(), count);
  Layout layout = Layout::plain;
  SK_TRY_ASSIGN(std::vector<TensorId> from, operands(l, layout));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  l.emit(kind, ir::NoAttrs{}, std::move(from), to);
  return {};
}
template <OpKind kind>
Result<void> binary(Lowering& l) {
  return of_all(l, kind, 2);
}
Result<void> where(Lowering& l) { return of_all(l, OpKind::select_v2, 3); }

Result<void> sum_or_mean(Lowering& l, bool is_mean) {
  if (is_mean || l.unit().inputs.empty()) SK_TRY(needs_float(l));
  Layout layout = Layout::plain;
  SK_TRY_ASSIGN(const std::vector<TensorId> from, operands(l, layout));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  const auto shape = [&](TensorId id) { return l.graph.tensor(id).shape; };
  TensorId sum = from[0];
  if (std::ranges::all_of(from, [&](TensorId id) { return shape(id) == shape(sum); })) {
    sum = like(l, to);
    l.emit(OpKind::add_n, ir::NoAttrs{}, from, sum);
  } else {  // in pairs, which may be broadcast
    for (size_t i = 1; i < from.size(); ++i) {
      SK_TRY_ASSIGN(const ir::Shapes both, ir::rules::broadcast_shapes(shape(sum), shape(from[i])));
      sum = arithmetic(l, OpKind::add, sum, from[i], l.temporary_of(l.graph.tensor(to).dtype, both[0].dims));
    }
  }
  if (is_mean) arithmetic(l, OpKind::mul, sum, number(l, 1 / static_cast<float>(from.size())), to);
  l.graph.ops.back().outputs = {to};
  return {};
}
Result<void> sum(Lowering& l) { return sum_or_mean(l, false); }
Result<void> mean(Lowering& l) { return sum_or_mean(l, true); }

// The exponent may have another type: a constant is converted.
Result<void> pow(Lowering& l) {
  const auto value = [&](size_t i) { return l.input(i) == nullptr ? nullptr : &l.model().value(l.input(i)->value); };
  const auto read = value(1) == nullptr ? std::nullopt : numbers(*value(1));
  if (!read || value(0) == nullptr || value(0)->dtype != ir::DType::float32 || value(1)->dtype == ir::DType::float32)
    return binary<OpKind::pow>(l);
  SK_TRY_ASSIGN(const auto dims, l.input_dims(1));
  SK_TRY_ASSIGN(const InOut io, in_out(l, dims.empty() ? std::nullopt : std::optional(Layout::plain)));
  const std::vector<float> exponents(read->begin(), read->end());
  l.emit(OpKind::pow, ir::NoAttrs{}, {io.from, floats(l, exponents, dims)}, io.to);
  return {};
}

// The rest has the sign of the divisor; with fmod=1 that of the number.
Result<void> mod(Lowering& l) {
  if (int_of(l.node(), "fmod", 0) != 0) return error(ErrorCode::unsupported, "fmod is not supported");
  return binary<OpKind::floor_mod>(l);
}

Result<void> prelu(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const Layout layout = l.common_layout(dims.size());
  SK_TRY_ASSIGN(const TensorId from, l.read(0, layout));
  SK_TRY_ASSIGN(const TensorId slope, l.read(1, layout, dims.size()));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  // The kernel needs slopes without the batch dimension.
  ir::Tensor& alpha = l.graph.tensor(slope);
  if (!alpha.is_constant() || alpha.shape.dims.empty() || alpha.shape.dims[0] != 1)
    return error(ErrorCode::unsupported, "its slopes are not constants for all images");
  alpha.shape.dims.erase(alpha.shape.dims.begin());
  l.emit(OpKind::prelu, ir::NoAttrs{}, {from, slope}, to);
  return {};
}

Result<void> by_dims(Lowering& l, OpKind kind, const std::vector<int32_t>& numbers) {
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  l.emit(kind, ir::NoAttrs{}, {io.from, l.ints(numbers)}, io.to);
  return {};
}
Result<void> expand(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.dims(l.unit().outputs.at(0).value));
  return by_dims(l, OpKind::broadcast_to, dims);
}
Result<void> tile(Lowering& l) {
  SK_TRY_ASSIGN(const auto repeats, l.list(1));
  if (!repeats) return error(ErrorCode::malformed, "it has no repeats");
  std::vector<int32_t> all;
  for (const int64_t one : *repeats) all.push_back(static_cast<int32_t>(std::clamp<int64_t>(one, 0, INT32_MAX)));
  return by_dims(l, OpKind::tile, all);
}

constexpr std::array kRows = {
    LowerRow{"Relu", unary<OpKind::relu>},
    LowerRow{"Sigmoid", unary<OpKind::logistic>},
    LowerRow{"Tanh", unary<OpKind::tanh>},
    LowerRow{"Exp", unary<OpKind::exp>},
    LowerRow{"Log", unary<OpKind::log>},
    LowerRow{"Abs", unary<OpKind::abs>},
    LowerRow{"Neg", unary<OpKind::neg>},
    LowerRow{"Sqrt", unary<OpKind::sqrt>},
    LowerRow{"Floor", unary<OpKind::floor>},
    LowerRow{"Ceil", unary<OpKind::ceil>},
    LowerRow{"Round", unary<OpKind::round>},
    LowerRow{"Sign", unary<OpKind::sign>},
    LowerRow{"Sin", unary<OpKind::sin>},
    LowerRow{"Cos", unary<OpKind::cos>},
    LowerRow{"HardSwish", unary<OpKind::hard_swish>},
    LowerRow{"Not", unary<OpKind::logical_not>},
    LowerRow{"Cast", unary<OpKind::cast>},
    LowerRow{"LeakyRelu", leaky_relu},
    LowerRow{"Gelu", gelu},
    LowerRow{"Clip", clip},
    LowerRow{"Pow", pow},
    LowerRow{"Mod", mod},
    LowerRow{"Equal", binary<OpKind::equal>},
    LowerRow{"Greater", binary<OpKind::greater>},
    LowerRow{"Less", binary<OpKind::less>},
    LowerRow{"GreaterOrEqual", binary<OpKind::greater_equal>},
    LowerRow{"LessOrEqual", binary<OpKind::less_equal>},
    LowerRow{"And", binary<OpKind::logical_and>},
    LowerRow{"Or", binary<OpKind::logical_or>},
    LowerRow{"Xor", binary<OpKind::not_equal>},
    LowerRow{"Where", where},
    LowerRow{"Sum", sum},
    LowerRow{"Mean", mean},
    LowerRow{"PRelu", prelu},
    LowerRow{"Expand", expand},
    LowerRow{"Tile", tile},
};

}  // namespace

std::span<const LowerRow> plain_ops() { return kRows; }

}  // namespace skillet::onnx
