#include "graph/ir/rules.h"

#include <algorithm>

#include "base/int_math.h"

namespace skillet::ir {
namespace {

constexpr int kAny = 1 << 20;

enum class Types : uint8_t { free, in0_out, all };

struct Row {
  int inputs_min, inputs_max, outputs;
  Types types;
  rules::Rule* rule;
};

Row row_of(OpKind kind) {
  constexpr int any = kAny;
  constexpr Row kRows[] = {
#define OP(kind, name, code, attrs, inputs_min, inputs_max, outputs, types, shapes, ...) \
  {inputs_min, inputs_max, outputs, Types::types, rules::shapes},
#include "graph/ir/op.def"
#undef OP
  };
  return kRows[static_cast<size_t>(kind)];
}

// The operands of these kinds depend on one another, so their rule checks which are present.
bool lists_absent_operands(OpKind kind) {
  return kind == OpKind::lstm || kind == OpKind::unidirectional_sequence_lstm || kind == OpKind::svdf;
}

Result<void> check_counts(const Row& row, const Op& op) {
  const auto inputs = static_cast<int>(op.inputs.size()), outputs = static_cast<int>(op.outputs.size());
  if (inputs < row.inputs_min || inputs > row.inputs_max) {
    return error(ErrorCode::malformed, "{} inputs, expected {}", inputs,
                 row.inputs_max == kAny ? fmt::format("at least {}", row.inputs_min)
                                        : fmt::format("{} to {}", row.inputs_min, row.inputs_max));
  }
  if (row.outputs == kAny ? outputs < 1 : outputs != row.outputs) {
    return error(ErrorCode::malformed, "{} outputs, expected {}", outputs,
                 row.outputs == kAny ? "at least 1" : fmt::format("{}", row.outputs));
  }
  for (int i = 0; i < inputs; ++i) {
    const bool required = (i < row.inputs_min && !lists_absent_operands(op.kind)) || row.inputs_max == kAny;
    if (required && op.inputs[static_cast<size_t>(i)] == kNoTensor) {
      return error(ErrorCode::malformed, "input {} is missing", i);
    }
  }
  return {};
}

Result<void> check_types(const Row& row, const Graph& graph, const Op& op) {
  if (row.types == Types::free) return {};
  const DType expected = graph.tensor(op.inputs[0]).dtype;
  const size_t inputs = row.types == Types::all ? op.inputs.size() : 1;
  const auto check = [&](TensorId id) -> Result<void> {
    if (graph.tensor(id).dtype == expected) return {};
    return error(ErrorCode::malformed, "{}: its type differs from the first input's, {}", describe_tensor(graph, id),
                 dtype_name(expected));
  };
  for (size_t i = 0; i < inputs; ++i) SK_TRY(check(op.inputs[i]));
  for (TensorId id : op.outputs) SK_TRY(check(id));
  return {};
}

bool is_empty(const Shape& shape) { return std::find(shape.dims.begin(), shape.dims.end(), 0) != shape.dims.end(); }

// Constant lists of indices may be empty, so they do not count.
bool is_nothing(const Tensor& tensor) {
  return is_empty(tensor.shape) && !(tensor.is_constant() && tensor.shape.rank() == 1);
}

// Ops whose outputs can have elements although an input has none.
constexpr OpKind kMakeSomethingOfNothing[] = {
    OpKind::mean,
    OpKind::reduce_max,
    OpKind::reduce_min,
    OpKind::arg_max,
    OpKind::arg_min,
    OpKind::transpose_conv,
    OpKind::concatenation,
    OpKind::pad,
    OpKind::pad_v2,
    OpKind::sum,
    OpKind::reduce_prod,
    OpKind::reduce_any,
    OpKind::reduce_all,
    OpKind::shape,
    OpKind::rank,
    OpKind::scatter_nd,
    OpKind::dynamic_update_slice,
    OpKind::unsorted_segment_sum,
    OpKind::unsorted_segment_prod,
    OpKind::non_max_suppression_v4,
    OpKind::non_max_suppression_v5,
};

// Other kernels divide by dimensions and take addresses of first elements. `shapes`: the outputs' shapes, if known.
Result<void> check_nothing(const Graph& graph, const Op& op, const Shapes& shapes) {
  if (std::find(std::begin(kMakeSomethingOfNothing), std::end(kMakeSomethingOfNothing), op.kind) !=
      std::end(kMakeSomethingOfNothing))
    return {};
  bool makes_something = false;
  for (size_t i = 0; i < op.outputs.size(); ++i)
    makes_something |= !is_empty(shapes.empty() ? graph.tensor(op.outputs[i]).shape : shapes[i]);
  for (TensorId id : op.inputs) {
    if (!makes_something || id == kNoTensor || !is_nothing(graph.tensor(id))) continue;
    return error(ErrorCode::unsupported, "input {} has no elements, but its results have", describe_tensor(graph, id));
  }
  return {};
}

}  // namespace

Result<int64_t> checked_elems(const Shape& shape) {
  if (shape.rank() > kMaxRank) {
    return error(ErrorCode::unsupported, "{} dimensions, the limit is {}", shape.rank(), kMaxRank);
  }
  int64_t product = 1;
  bool empty = false;
  for (int32_t dim : shape.dims) {
    if (dim < 0) return error(ErrorCode::malformed, "shape {} has a negative dimension", shape.to_string());
    empty |= dim == 0;
    product *= std::max(dim, 1);  // both below 2^31: no overflow
    if (product > kMaxTensorElems) {
      return error(ErrorCode::unsupported, "shape {} has more than {} elements", shape.to_string(), kMaxTensorElems);
    }
  }
  return empty ? 0 : product;
}

Result<Shapes> check_op(const Graph& graph, const Op& op) {
  if (op.kind == OpKind::opaque) return Shapes{};
  const Row row = row_of(op.kind);
  if (op.attrs.index() != default_attrs(op.kind).index()) {
    return error(ErrorCode::internal, "attributes of another kind of op");
  }
  SK_TRY(check_counts(row, op));
  SK_TRY(check_types(row, graph, op));
  SK_TRY_ASSIGN(Shapes shapes, row.rule({graph, op}));
  if (!shapes.empty() && shapes.size() != op.outputs.size()) {
    return error(ErrorCode::malformed, "{} outputs, expected {}", op.outputs.size(), shapes.size());
  }
  for (const Shape& shape : shapes) SK_TRY(checked_elems(shape));
  SK_TRY(check_nothing(graph, op, shapes));
  return shapes;
}

bool has_empty_operand(const Graph& graph, const Op& op) {
  const auto is_one = [&](TensorId id) { return id != kNoTensor && is_nothing(graph.tensor(id)); };
  return std::ranges::any_of(op.inputs, is_one) || std::ranges::any_of(op.outputs, is_one);
}

namespace rules {

Result<void> need_rank(const OpView& v, size_t input, int rank) {
  if (v.shape(input).rank() == rank) return {};
  return error(ErrorCode::malformed, "input {} must have {} dimensions", describe_tensor(v.graph, v.op.inputs[input]),
               rank);
}

Result<int> resolve_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return error(ErrorCode::malformed, "axis {} is outside the {} dimensions", axis, rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::optional<std::vector<int64_t>>> constant_ints(const OpView& v, size_t input) {
  using Values = std::optional<std::vector<int64_t>>;
  const Tensor& tensor = v.in(input);
  if (tensor.dtype != DType::int32 && tensor.dtype != DType::int64) {
    return error(ErrorCode::malformed, "input {} must be int32 or int64", describe_tensor(v.graph, v.op.inputs[input]));
  }
  if (!tensor.is_constant()) return Values{};
  // Lists of axes, sizes, parts. A long list shared by many ops of a hostile file would cost hours.
  constexpr int64_t kMaxIndexElems = 4096;
  if (tensor.shape.elems() > kMaxIndexElems) {
    return error(ErrorCode::unsupported, "input {} has more than {} elements",
                 describe_tensor(v.graph, v.op.inputs[input]), kMaxIndexElems);
  }
  if (tensor.dtype == DType::int64) return Values{tensor.values<int64_t>()};
  const std::vector<int32_t> narrow = tensor.values<int32_t>();
  return Values{std::vector<int64_t>(narrow.begin(), narrow.end())};
}

Result<std::optional<int64_t>> constant_int(const OpView& v, size_t input) {
  SK_TRY_ASSIGN(const auto values, constant_ints(v, input));
  if (!values) return std::optional<int64_t>{};
  if (values->size() != 1) {
    return error(ErrorCode::malformed, "input {} must have 1 element", describe_tensor(v.graph, v.op.inputs[input]));
  }
  return std::optional<int64_t>{values->front()};
}

static bool is_dimension(int64_t value) { return value >= 0 && value <= INT32_MAX; }

Result<int32_t> dimension(int64_t value, std::string_view what) {
  if (is_dimension(value)) return static_cast<int32_t>(value);
  return error(ErrorCode::malformed, "{} comes out as {}", what, value);
}

Result<Shapes> one_shape(const std::vector<int64_t>& dims) {
  Shape shape;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!is_dimension(dims[i])) return dimension(dims[i], fmt::format("output dimension {}", i)).error();
    shape.dims.push_back(static_cast<int32_t>(dims[i]));
  }
  return Shapes{std::move(shape)};
}

}  // namespace rules
}  // namespace skillet::ir
