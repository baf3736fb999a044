#include "graph/ref/ref.h"

#include <algorithm>

#include "base/stop.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

struct Row {
  ir::OpKind kind;
  Prepare* prepare;
};

constexpr Row kKernels[] = {
    {ir::OpKind::conv_2d, prepare_conv_2d},
    {ir::OpKind::depthwise_conv_2d, prepare_depthwise_conv_2d},
    {ir::OpKind::transpose_conv, prepare_transpose_conv},
    {ir::OpKind::fully_connected, prepare_fully_connected},
    {ir::OpKind::add, prepare_add},
    {ir::OpKind::sub, prepare_sub},
    {ir::OpKind::mul, prepare_mul},
    {ir::OpKind::div, prepare_div},
    {ir::OpKind::maximum, prepare_maximum},
    {ir::OpKind::minimum, prepare_minimum},
    {ir::OpKind::average_pool_2d, prepare_average_pool_2d},
    {ir::OpKind::max_pool_2d, prepare_max_pool_2d},
    {ir::OpKind::concatenation, prepare_concatenation},
    {ir::OpKind::split, prepare_split},
    {ir::OpKind::split_v, prepare_split_v},
    {ir::OpKind::pad, prepare_pad},
    {ir::OpKind::pad_v2, prepare_pad},
    {ir::OpKind::reshape, prepare_reshape},
    {ir::OpKind::squeeze, prepare_reshape},
    {ir::OpKind::expand_dims, prepare_reshape},
    {ir::OpKind::transpose, prepare_transpose},
    {ir::OpKind::strided_slice, prepare_strided_slice},
    {ir::OpKind::slice, prepare_slice},
    {ir::OpKind::pack, prepare_pack},
    {ir::OpKind::unpack, prepare_unpack},
    {ir::OpKind::relu, prepare_relu},
    {ir::OpKind::relu_n1_to_1, prepare_relu_n1_to_1},
    {ir::OpKind::byte_table, prepare_byte_table},
    {ir::OpKind::svdf, prepare_svdf},
    {ir::OpKind::read_variable, prepare_read_variable},
    {ir::OpKind::assign_variable, prepare_assign_variable},
    {ir::OpKind::relu6, prepare_relu6},
    {ir::OpKind::leaky_relu, prepare_leaky_relu},
    {ir::OpKind::abs, prepare_abs},
    {ir::OpKind::neg, prepare_neg},
    {ir::OpKind::logistic, prepare_logistic},
    {ir::OpKind::tanh, prepare_tanh},
    {ir::OpKind::hard_swish, prepare_hard_swish},
    {ir::OpKind::elu, prepare_elu},
    {ir::OpKind::exp, prepare_exp},
    {ir::OpKind::softmax, prepare_softmax},
    {ir::OpKind::mean, prepare_mean},
    {ir::OpKind::sum, prepare_sum},
    {ir::OpKind::arg_max, prepare_arg_max},
    {ir::OpKind::resize_bilinear, prepare_resize_bilinear},
    {ir::OpKind::resize_nearest_neighbor, prepare_resize_nearest_neighbor},
    {ir::OpKind::space_to_depth, prepare_space_to_depth},
    {ir::OpKind::depth_to_space, prepare_depth_to_space},
    {ir::OpKind::batch_to_space_nd, prepare_batch_to_space_nd},
    {ir::OpKind::space_to_batch_nd, prepare_space_to_batch_nd},
    {ir::OpKind::quantize, prepare_quantize},
    {ir::OpKind::dequantize, prepare_dequantize},
    {ir::OpKind::cast, prepare_cast},
    {ir::OpKind::mirror_pad, prepare_mirror_pad},
    {ir::OpKind::gather, prepare_gather},
    {ir::OpKind::gather_nd, prepare_gather_nd},
    {ir::OpKind::one_hot, prepare_one_hot},
    {ir::OpKind::prelu, prepare_prelu},
    {ir::OpKind::relu_0_to_1, prepare_relu_0_to_1},
    {ir::OpKind::gelu, prepare_gelu},
    {ir::OpKind::log, prepare_log},
    {ir::OpKind::sqrt, prepare_sqrt},
    {ir::OpKind::rsqrt, prepare_rsqrt},
    {ir::OpKind::square, prepare_square},
    {ir::OpKind::sin, prepare_sin},
    {ir::OpKind::cos, prepare_cos},
    {ir::OpKind::floor, prepare_floor},
    {ir::OpKind::ceil, prepare_ceil},
    {ir::OpKind::round, prepare_round},
    {ir::OpKind::sign, prepare_sign},
    {ir::OpKind::zeros_like, prepare_zeros_like},
    {ir::OpKind::squared_difference, prepare_squared_difference},
    {ir::OpKind::pow, prepare_pow},
    {ir::OpKind::floor_div, prepare_floor_div},
    {ir::OpKind::floor_mod, prepare_floor_mod},
    {ir::OpKind::add_n, prepare_add_n},
    {ir::OpKind::equal, prepare_equal},
    {ir::OpKind::not_equal, prepare_not_equal},
    {ir::OpKind::greater, prepare_greater},
    {ir::OpKind::greater_equal, prepare_greater_equal},
    {ir::OpKind::less, prepare_less},
    {ir::OpKind::less_equal, prepare_less_equal},
    {ir::OpKind::logical_and, prepare_logical_and},
    {ir::OpKind::logical_or, prepare_logical_or},
    {ir::OpKind::logical_not, prepare_logical_not},
    {ir::OpKind::topk_v2, prepare_topk_v2},
    {ir::OpKind::reverse_v2, prepare_reverse_v2},
    {ir::OpKind::tile, prepare_tile},
    {ir::OpKind::broadcast_to, prepare_broadcast_to},
    {ir::OpKind::fill, prepare_fill},
    {ir::OpKind::shape, prepare_shape},
    {ir::OpKind::cumsum, prepare_cumsum},
    {ir::OpKind::arg_min, prepare_arg_min},
    {ir::OpKind::reduce_max, prepare_reduce_max},
    {ir::OpKind::reduce_min, prepare_reduce_min},
    {ir::OpKind::reduce_prod, prepare_reduce_prod},
    {ir::OpKind::reduce_any, prepare_reduce_any},
    {ir::OpKind::log_softmax, prepare_log_softmax},
    {ir::OpKind::l2_normalization, prepare_l2_normalization},
    {ir::OpKind::batch_matmul, prepare_batch_matmul},
    {ir::OpKind::lstm, prepare_lstm},
    {ir::OpKind::detection_post_process, prepare_detection_post_process},
    {ir::OpKind::select, prepare_select},
    {ir::OpKind::select_v2, prepare_select},
    {ir::OpKind::unidirectional_sequence_lstm, prepare_lstm},
    {ir::OpKind::rank, prepare_rank},
    {ir::OpKind::broadcast_args, prepare_broadcast_args},
    {ir::OpKind::range, prepare_range},
    {ir::OpKind::where, prepare_where},
    {ir::OpKind::reduce_all, prepare_reduce_all},
    {ir::OpKind::l2_pool_2d, prepare_l2_pool_2d},
    {ir::OpKind::local_response_normalization, prepare_local_response_normalization},
    {ir::OpKind::scatter_nd, prepare_scatter_nd},
    {ir::OpKind::reverse_sequence, prepare_reverse_sequence},
    {ir::OpKind::embedding_lookup, prepare_embedding_lookup},
    {ir::OpKind::matrix_diag, prepare_matrix_diag},
    {ir::OpKind::matrix_set_diag, prepare_matrix_set_diag},
    {ir::OpKind::segment_sum, prepare_segment_sum},
    {ir::OpKind::unsorted_segment_sum, prepare_unsorted_segment_sum},
    {ir::OpKind::unsorted_segment_prod, prepare_unsorted_segment_prod},
    {ir::OpKind::unsorted_segment_max, prepare_unsorted_segment_max},
    {ir::OpKind::unsorted_segment_min, prepare_unsorted_segment_min},
    {ir::OpKind::dynamic_update_slice, prepare_dynamic_update_slice},
    {ir::OpKind::bitwise_xor, prepare_bitwise_xor},
    {ir::OpKind::right_shift, prepare_right_shift},
    {ir::OpKind::atan2, prepare_atan2},
    {ir::OpKind::non_max_suppression_v4, prepare_non_max_suppression},
    {ir::OpKind::non_max_suppression_v5, prepare_non_max_suppression},
};

// A damaged file can declare sizes that no machine has; allocating them would end the process.
Result<void> check_memory(const ir::Graph& graph) {
  constexpr int64_t kMaxBytes = int64_t{1} << 32;
  int64_t bytes = 0;
  for (const ir::Tensor& tensor : graph.tensors) bytes += tensor.is_constant() ? 0 : tensor.bytes();
  if (bytes <= kMaxBytes) return {};
  return error(ErrorCode::unsupported, "the computed tensors need {} bytes, the limit is {}", bytes, kMaxBytes);
}

}  // namespace

Result<std::unique_ptr<Kernel>> prepare(const ir::Graph& graph, ir::OpId op) {
  const Context context(graph, op);
  const ir::OpKind kind = graph.op(op).kind;
  const Row* row = std::find_if(std::begin(kKernels), std::end(kKernels), [&](const Row& r) { return r.kind == kind; });
  if (row == std::end(kKernels)) return context.unsupported("no CPU kernel for {}", ir::op_name(graph.op(op)));
  return row->prepare(context);
}

Result<std::vector<Bytes>> compute(const ir::Graph& graph, ir::OpId op) {
  SK_TRY_ASSIGN(const auto kernel, prepare(graph, op));
  std::vector<std::span<uint8_t>> tensors(graph.tensors.size());
  for (const ir::TensorId id : graph.op(op).inputs) {
    if (id == ir::kNoTensor) continue;
    const std::span<const uint8_t> data = graph.tensor(id).data;
    tensors[static_cast<size_t>(id)] = {const_cast<uint8_t*>(data.data()), data.size()};  // which kernels only read
  }
  std::vector<Bytes> outputs;
  for (const ir::TensorId id : graph.op(op).outputs)
    outputs.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
  for (size_t i = 0; i < outputs.size(); ++i) tensors[static_cast<size_t>(graph.op(op).outputs[i])] = outputs[i];
  SK_TRY(kernel->run(tensors));
  return outputs;
}

Result<Interpreter> Interpreter::create(const ir::Graph& graph) {
  SK_TRY(ir::verify(graph));
  SK_TRY(check_memory(graph));
  Interpreter interpreter;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    SK_TRY_ASSIGN(auto kernel, prepare(graph, static_cast<ir::OpId>(i)));
    interpreter.kernels_.push_back(std::move(kernel));
  }
  interpreter.storage_.resize(graph.tensors.size());
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const ir::Tensor& tensor = graph.tensors[i];
    if (tensor.is_constant()) {
      // Constants are not copied. Kernels only read their inputs, and verify() has refused ops that write a constant.
      interpreter.spans_.emplace_back(const_cast<uint8_t*>(tensor.data.data()), tensor.data.size());
    } else {
      interpreter.storage_[i] = initial_bytes(tensor);
      interpreter.spans_.emplace_back(interpreter.storage_[i]);
    }
  }
  return interpreter;
}

std::span<uint8_t> Interpreter::tensor(ir::TensorId id) { return spans_[static_cast<size_t>(id)]; }

Result<void> Interpreter::run() {
  for (const auto& kernel : kernels_) {
    SK_TRY(check_stop());
    SK_TRY(kernel->run(spans_));
  }
  return {};
}

}  // namespace skillet::ref
