#include "ref/ref.h"

#include <algorithm>

#include "ref/kernel.h"

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
};

// Ops that the IR knows by name only but real networks use around their convolutions. Their operands are not verified:
// checked here are the counts, and for elementwise ones types and shapes.
struct OpaqueRow {
  std::string_view name;
  size_t inputs;
  bool elementwise;
  Prepare* prepare;
};
constexpr OpaqueRow kOpaqueKernels[] = {
    {"FLOOR_DIV", 2, true, prepare_floor_div},
    {"SQRT", 1, true, prepare_sqrt},
    {"GATHER_ND", 2, false, prepare_gather_nd},
};

Result<void> check_elementwise(const Context& c) {
  for (size_t i = 0; i < c.input_count(); ++i) {
    const ir::Tensor &input = c.input(i), &output = c.output();
    if (input.dtype != output.dtype) return c.unsupported("types differ");
    // The output has the shape of its larger operand, the other one has it too or is a single value.
    if (input.shape != output.shape &&
        (i == 0 || input.shape.elems() != 1 || input.shape.rank() > output.shape.rank())) {
      return c.unsupported("shapes {} and {}", input.shape.to_string(), output.shape.to_string());
    }
  }
  return {};
}

Result<KernelPtr> prepare_opaque(const Context& c) {
  for (const OpaqueRow& row : kOpaqueKernels) {
    if (row.name != c.op().opaque_name) continue;
    bool counts = c.input_count() == row.inputs && c.output_count() == 1;
    for (size_t i = 0; counts && i < row.inputs; ++i) counts = c.has_input(i);
    if (!counts) return c.unsupported("{} inputs and {} outputs", c.input_count(), c.output_count());
    if (row.elementwise) SK_TRY(check_elementwise(c));
    return row.prepare(c);
  }
  return c.unsupported("no CPU kernel for {}", ir::op_name(c.op()));
}

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
  if (kind == ir::OpKind::opaque) return prepare_opaque(context);
  const Row* row = std::find_if(std::begin(kKernels), std::end(kKernels), [&](const Row& r) { return r.kind == kind; });
  if (row == std::end(kKernels)) return context.unsupported("no CPU kernel for {}", ir::op_kind_name(kind));
  return row->prepare(context);
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
      interpreter.storage_[i].resize(static_cast<size_t>(tensor.bytes()));
      interpreter.spans_.emplace_back(interpreter.storage_[i]);
    }
  }
  return interpreter;
}

std::span<uint8_t> Interpreter::tensor(ir::TensorId id) { return spans_[static_cast<size_t>(id)]; }

Result<void> Interpreter::run() {
  return run_each([](ir::OpId) {});
}

}  // namespace skillet::ref
