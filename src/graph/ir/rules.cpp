#include "graph/ir/rules.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"

namespace skillet::ir {
namespace {

constexpr int kAny = 1 << 20;

enum class Types : uint8_t {
  any,
  in0_out,  // output 0 has the type of input 0
  all,      // all inputs and outputs have one type
};

// Inputs from `inputs_min` on are optional, unless the op takes any number of them.
struct Row {
  OpKind kind;
  int inputs_min, inputs_max, outputs;
  Types types;
  rules::Rule rule;
};

// In the order of op.def.
constexpr std::array kRows = {
    Row{OpKind::conv_2d, 2, 3, 1, Types::in0_out, rules::conv},
    Row{OpKind::depthwise_conv_2d, 2, 3, 1, Types::in0_out, rules::depthwise_conv},
    Row{OpKind::transpose_conv, 3, 4, 1, Types::any, rules::transpose_conv},
    Row{OpKind::fully_connected, 2, 3, 1, Types::any, rules::fully_connected},
    Row{OpKind::add, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::sub, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::mul, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::div, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::maximum, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::minimum, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::average_pool_2d, 1, 1, 1, Types::all, rules::pool},
    Row{OpKind::max_pool_2d, 1, 1, 1, Types::all, rules::pool},
    Row{OpKind::concatenation, 1, kAny, 1, Types::all, rules::concat},
    Row{OpKind::split, 2, 2, kAny, Types::any, rules::split},
    Row{OpKind::split_v, 3, 3, kAny, Types::in0_out, rules::split_v},
    Row{OpKind::pad, 2, 2, 1, Types::in0_out, rules::pad},
    Row{OpKind::pad_v2, 3, 3, 1, Types::in0_out, rules::pad},
    Row{OpKind::mirror_pad, 2, 2, 1, Types::in0_out, rules::mirror_pad},
    Row{OpKind::reshape, 1, 2, 1, Types::in0_out, rules::reshape},
    Row{OpKind::squeeze, 1, 1, 1, Types::in0_out, rules::squeeze},
    Row{OpKind::expand_dims, 2, 2, 1, Types::in0_out, rules::expand_dims},
    Row{OpKind::transpose, 2, 2, 1, Types::in0_out, rules::transpose},
    Row{OpKind::strided_slice, 4, 4, 1, Types::in0_out, rules::strided_slice},
    Row{OpKind::slice, 3, 3, 1, Types::in0_out, rules::slice},
    Row{OpKind::gather, 2, 2, 1, Types::in0_out, rules::gather},
    Row{OpKind::pack, 1, kAny, 1, Types::all, rules::pack},
    Row{OpKind::unpack, 1, 1, kAny, Types::all, rules::unpack},
    Row{OpKind::relu, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::relu_n1_to_1, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::relu6, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::leaky_relu, 1, 1, 1, Types::all, rules::leaky_relu},
    Row{OpKind::prelu, 2, 2, 1, Types::all, rules::prelu},
    Row{OpKind::abs, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::neg, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::logistic, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::tanh, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::hard_swish, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::elu, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::exp, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::softmax, 1, 1, 1, Types::any, rules::softmax},
    Row{OpKind::mean, 2, 2, 1, Types::in0_out, rules::reduce},
    Row{OpKind::sum, 2, 2, 1, Types::in0_out, rules::reduce},
    Row{OpKind::arg_max, 2, 2, 1, Types::any, rules::arg_max},
    Row{OpKind::resize_bilinear, 2, 2, 1, Types::in0_out, rules::resize},
    Row{OpKind::resize_nearest_neighbor, 2, 2, 1, Types::in0_out, rules::resize},
    Row{OpKind::space_to_depth, 1, 1, 1, Types::all, rules::space_to_depth},
    Row{OpKind::depth_to_space, 1, 1, 1, Types::all, rules::depth_to_space},
    Row{OpKind::batch_to_space_nd, 3, 3, 1, Types::in0_out, rules::batch_to_space},
    Row{OpKind::space_to_batch_nd, 3, 3, 1, Types::in0_out, rules::space_to_batch},
    Row{OpKind::quantize, 1, 1, 1, Types::any, rules::same_shape},
    Row{OpKind::dequantize, 1, 1, 1, Types::any, rules::same_shape},
    Row{OpKind::cast, 1, 1, 1, Types::any, rules::same_shape},
    Row{OpKind::relu_0_to_1, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::gelu, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::log, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::sqrt, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::rsqrt, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::square, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::sin, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::cos, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::floor, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::ceil, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::round, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::sign, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::zeros_like, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::squared_difference, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::pow, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::floor_div, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::floor_mod, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::add_n, 1, kAny, 1, Types::all, rules::add_n},
    Row{OpKind::equal, 2, 2, 1, Types::any, rules::compare},
    Row{OpKind::not_equal, 2, 2, 1, Types::any, rules::compare},
    Row{OpKind::greater, 2, 2, 1, Types::any, rules::compare},
    Row{OpKind::greater_equal, 2, 2, 1, Types::any, rules::compare},
    Row{OpKind::less, 2, 2, 1, Types::any, rules::compare},
    Row{OpKind::less_equal, 2, 2, 1, Types::any, rules::compare},
    Row{OpKind::logical_and, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::logical_or, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::logical_not, 1, 1, 1, Types::all, rules::same_shape},
    Row{OpKind::select, 3, 3, 1, Types::any, rules::select},
    Row{OpKind::select_v2, 3, 3, 1, Types::any, rules::select},
    Row{OpKind::topk_v2, 2, 2, 2, Types::any, rules::topk},
    Row{OpKind::reverse_v2, 2, 2, 1, Types::in0_out, rules::reverse},
    Row{OpKind::gather_nd, 2, 2, 1, Types::in0_out, rules::gather_nd},
    Row{OpKind::one_hot, 4, 4, 1, Types::any, rules::one_hot},
    Row{OpKind::tile, 2, 2, 1, Types::in0_out, rules::tile},
    Row{OpKind::broadcast_to, 2, 2, 1, Types::in0_out, rules::broadcast_to},
    Row{OpKind::fill, 2, 2, 1, Types::any, rules::fill},
    Row{OpKind::shape, 1, 1, 1, Types::any, rules::shape},
    Row{OpKind::cumsum, 2, 2, 1, Types::in0_out, rules::cumsum},
    Row{OpKind::arg_min, 2, 2, 1, Types::any, rules::arg_max},
    Row{OpKind::reduce_max, 2, 2, 1, Types::in0_out, rules::reduce},
    Row{OpKind::reduce_min, 2, 2, 1, Types::in0_out, rules::reduce},
    Row{OpKind::reduce_prod, 2, 2, 1, Types::in0_out, rules::reduce},
    Row{OpKind::reduce_any, 2, 2, 1, Types::in0_out, rules::reduce},
    Row{OpKind::log_softmax, 1, 1, 1, Types::all, rules::over_last_axis},
    Row{OpKind::l2_normalization, 1, 1, 1, Types::all, rules::over_last_axis},
    Row{OpKind::batch_matmul, 2, 2, 1, Types::any, rules::batch_matmul},
    Row{OpKind::lstm, 20, 24, 1, Types::any, rules::lstm},
    Row{OpKind::unidirectional_sequence_lstm, 20, 24, 1, Types::any, rules::lstm},
    Row{OpKind::rank, 1, 1, 1, Types::any, rules::rank},
    Row{OpKind::broadcast_args, 2, 2, 1, Types::all, rules::broadcast_args},
    Row{OpKind::range, 3, 3, 1, Types::all, rules::range},
    Row{OpKind::where, 1, 1, 1, Types::any, rules::where},
    Row{OpKind::reduce_all, 2, 2, 1, Types::in0_out, rules::reduce},
    Row{OpKind::l2_pool_2d, 1, 1, 1, Types::all, rules::pool},
    Row{OpKind::local_response_normalization, 1, 1, 1, Types::all, rules::local_response_normalization},
    Row{OpKind::scatter_nd, 3, 3, 1, Types::any, rules::scatter_nd},
    Row{OpKind::reverse_sequence, 2, 2, 1, Types::in0_out, rules::reverse_sequence},
    Row{OpKind::embedding_lookup, 2, 2, 1, Types::any, rules::embedding_lookup},
    Row{OpKind::matrix_diag, 1, 1, 1, Types::all, rules::matrix_diag},
    Row{OpKind::matrix_set_diag, 2, 2, 1, Types::all, rules::matrix_set_diag},
    Row{OpKind::segment_sum, 2, 2, 1, Types::in0_out, rules::segment_sum},
    Row{OpKind::unsorted_segment_sum, 3, 3, 1, Types::in0_out, rules::unsorted_segment},
    Row{OpKind::unsorted_segment_prod, 3, 3, 1, Types::in0_out, rules::unsorted_segment},
    Row{OpKind::unsorted_segment_max, 3, 3, 1, Types::in0_out, rules::unsorted_segment},
    Row{OpKind::unsorted_segment_min, 3, 3, 1, Types::in0_out, rules::unsorted_segment},
    Row{OpKind::dynamic_update_slice, 3, 3, 1, Types::in0_out, rules::dynamic_update_slice},
    Row{OpKind::bitwise_xor, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::right_shift, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::atan2, 2, 2, 1, Types::all, rules::broadcast},
    Row{OpKind::non_max_suppression_v4, 5, 5, 2, Types::any, rules::non_max_suppression},
    Row{OpKind::non_max_suppression_v5, 6, 6, 3, Types::any, rules::non_max_suppression},
    Row{OpKind::svdf, 5, 5, 1, Types::any, rules::svdf},
    Row{OpKind::byte_table, 2, 2, 1, Types::any, rules::byte_table},
    Row{OpKind::read_variable, 1, 1, 1, Types::all, rules::read_variable},
    Row{OpKind::assign_variable, 1, 1, 1, Types::all, rules::assign_variable},
    Row{OpKind::detection_post_process, 3, 3, 4, Types::any, rules::detection_post_process},
};
static_assert(kRows.size() == static_cast<size_t>(OpKind::opaque));
static_assert([] {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].kind != static_cast<OpKind>(i)) return false;
  }
  return true;
}());

// Which of its operands are there depends on one another: the rule says.
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
    const bool required = (i < row.inputs_min && !lists_absent_operands(row.kind)) || row.inputs_max == kAny;
    if (required && op.inputs[static_cast<size_t>(i)] == kNoTensor) {
      return error(ErrorCode::malformed, "input {} is missing", i);
    }
  }
  return {};
}

Result<void> check_types(const Row& row, const Graph& graph, const Op& op) {
  if (row.types == Types::any) return {};
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

// Kernels divide by dimensions and take addresses of first elements. Only lists of indices may be empty.
Result<void> check_not_empty(const Graph& graph, const Op& op) {
  for (TensorId id : op.inputs) {
    if (id == kNoTensor) continue;
    const Tensor& tensor = graph.tensor(id);
    const auto& dims = tensor.shape.dims;
    if (std::find(dims.begin(), dims.end(), 0) == dims.end() || (tensor.is_constant() && dims.size() == 1)) continue;
    return error(ErrorCode::unsupported, "input {} is empty", describe_tensor(graph, id));
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
  const Row& row = kRows[static_cast<size_t>(op.kind)];
  if (op.attrs.index() != default_attrs(op.kind).index()) {
    return error(ErrorCode::internal, "attributes of another kind of op");
  }
  SK_TRY(check_counts(row, op));
  SK_TRY(check_types(row, graph, op));
  SK_TRY(check_not_empty(graph, op));
  SK_TRY_ASSIGN(Shapes shapes, row.rule({graph, op}));
  if (!shapes.empty() && shapes.size() != op.outputs.size()) {
    return error(ErrorCode::malformed, "{} outputs, expected {}", op.outputs.size(), shapes.size());
  }
  for (const Shape& shape : shapes) {
    SK_TRY_ASSIGN(const int64_t elems, checked_elems(shape));
    if (elems == 0) return error(ErrorCode::unsupported, "output shape {} is empty", shape.to_string());
  }
  return shapes;
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
  // Lists of axes, sizes, parts; a long one shared by many ops of a hostile file would cost hours.
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

Result<int32_t> dimension(int64_t value, std::string_view what) {
  if (value > 0 && value <= INT32_MAX) return static_cast<int32_t>(value);
  return error(ErrorCode::malformed, "{} comes out as {}", what, value);
}

Result<Shapes> one_shape(const std::vector<int64_t>& dims) {
  Shape shape;
  for (size_t i = 0; i < dims.size(); ++i) {
    SK_TRY_ASSIGN(const int32_t dim, dimension(dims[i], fmt::format("output dimension {}", i)));
    shape.dims.push_back(dim);
  }
  return Shapes{std::move(shape)};
}

}  // namespace rules
}  // namespace skillet::ir
