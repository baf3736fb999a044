#include <algorithm>
#include <optional>
#include <vector>

#include "base/is_any_of.h"
#include "npu/driver.h"

namespace skillet::npu {
namespace {

// True if it averages whole rows or columns of an image, as AVERAGE_POOL_2D also can.
bool averages_image(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape &from = graph.tensor(op.inputs[0]).shape, &to = graph.tensor(op.outputs[0]).shape;
  return from.rank() == 4 && to.elems() == int64_t{from[0]} * from[3];
}

Remedy other_op(const ir::Graph& graph, const ir::Op& op) {
  switch (op.kind) {
    case ir::OpKind::average_pool_2d:
      return op.as<ir::PoolAttrs>().padding == ir::Padding::valid ? Remedy::none : Remedy::no_padding;
    case ir::OpKind::mean: return averages_image(graph, op) ? Remedy::split : Remedy::average;
    case ir::OpKind::add:
    case ir::OpKind::sub:
    case ir::OpKind::mul:
    case ir::OpKind::div: return remedy_of_constant(graph, op);
    case ir::OpKind::mirror_pad: return Remedy::zeros;
    case ir::OpKind::resize_bilinear:
    case ir::OpKind::transpose_conv:
    case ir::OpKind::depth_to_space: return Remedy::nearest;
    case ir::OpKind::space_to_batch_nd:
    case ir::OpKind::batch_to_space_nd: return Remedy::dilation;
    case ir::OpKind::quantize:
      if (graph.tensor(op.inputs[0]).dtype != ir::DType::float32) return Remedy::none;
      return std::ranges::count(graph.inputs, op.inputs[0]) != 0 ? Remedy::keep_bytes : Remedy::quantize;
    case ir::OpKind::dequantize:
      return std::ranges::count(graph.outputs, op.outputs[0]) != 0 ? Remedy::keep_bytes : Remedy::quantize;
    case ir::OpKind::pack:
    case ir::OpKind::unpack:
    case ir::OpKind::split_v: return Remedy::channels;
    default: return Remedy::none;
  }
}

// True if a 1x1 filter can hold the constant: one number, or one for each channel.
bool is_by_channel(const ir::Shape& constant, const ir::Shape& image) {
  return constant.elems() == 1 || (constant.elems() == constant.back(0) && constant.back(0) == image.back(0));
}

// True for a TILE that repeats each pixel: only along axes of size 1, and not along other axes.
bool repeats_pixels(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape &from = graph.tensor(op.inputs[0]).shape, &to = graph.tensor(op.outputs[0]).shape;
  bool out = from.rank() > 4 && from.rank() == to.rank();
  for (int i = 0; out && i < from.rank(); ++i) out = from.back(i) == to.back(i) || from.back(i) == 1;
  return out;
}

// Kinds that no chip takes, but that passes replace by other ops if they have 8 bits.
bool runs_as_bytes(const ir::Graph& graph, const ir::Op& op) {
  using enum ir::OpKind;
  if (op.kind == mul || op.kind == div) return remedy_of_constant(graph, op) != Remedy::none;
  return is_any_of(op.kind, {average_pool_2d, max_pool_2d, mean, prelu, leaky_relu, relu6, hard_swish, maximum, minimum,
                             slice, strided_slice, split_v, transpose_conv, space_to_depth});
}

bool only_moves(const ir::Op& op) {
  return is_any_of(op.kind, {ir::OpKind::transpose, ir::OpKind::reshape, ir::OpKind::squeeze, ir::OpKind::expand_dims});
}

// True if only operations that move values are between an input of the graph and the tensor. `source`: what else the
// values may come from.
bool comes_from(const ir::Graph& graph, ir::TensorId tensor, std::optional<ir::OpKind> source) {
  const std::vector<ir::OpId> producers = ir::producers(graph);
  for (size_t steps = 0; steps <= graph.ops.size() && tensor != ir::kNoTensor; ++steps) {
    const ir::OpId before = producers[static_cast<size_t>(tensor)];
    if (before < 0) return !source && std::ranges::count(graph.inputs, tensor) != 0;
    if (source && graph.op(before).kind == *source) return true;
    if (!only_moves(graph.op(before))) return false;
    tensor = graph.op(before).input(0);
  }
  return false;
}

// True if only operations that move values are between the tensor and outputs of the graph or, if `reader` is given,
// operations of this kind.
bool goes_to(const ir::Graph& graph, ir::TensorId tensor, std::optional<ir::OpKind> reader) {
  const auto readers = ir::consumers(graph);
  std::vector<ir::TensorId> left = {tensor};
  for (size_t i = 0; i < left.size() && i <= graph.ops.size(); ++i) {
    const bool is_output = std::ranges::count(graph.outputs, left[i]) != 0;
    const std::vector<ir::OpId>& all = readers[static_cast<size_t>(left[i])];
    if (reader ? is_output || all.empty() : !is_output && all.empty()) return false;
    for (const ir::OpId one : all) {
      if (reader && graph.op(one).kind == *reader) continue;
      if (!only_moves(graph.op(one))) return false;
      left.push_back(graph.op(one).outputs[0]);
    }
  }
  return true;
}

}  // namespace

Remedy remedy_at_border(const ir::Graph& graph, ir::OpId id) {
  using enum ir::OpKind;
  const ir::Op& op = graph.op(id);
  if (op.inputs.empty() || op.input(0) == ir::kNoTensor || op.outputs.size() != 1) return Remedy::none;
  const ir::TensorId from = op.input(0), to = op.outputs[0];
  if (op.kind == quantize) return comes_from(graph, from, {}) ? Remedy::keep_bytes : Remedy::none;
  if (op.kind == dequantize) return goes_to(graph, to, {}) ? Remedy::keep_bytes : Remedy::none;
  if (!only_moves(op) || graph.tensor(from).dtype != ir::DType::float32) return Remedy::none;
  const bool is_border = (comes_from(graph, from, {}) && goes_to(graph, to, quantize)) ||
                         (comes_from(graph, from, dequantize) && goes_to(graph, to, {}));
  return is_border ? Remedy::move_bytes : Remedy::none;
}

Remedy remedy_of_constant(const ir::Graph& graph, const ir::Op& op) {
  if (op.kind == ir::OpKind::minimum || op.kind == ir::OpKind::maximum) return Remedy::clip;
  if (!is_any_of(op.kind, {ir::OpKind::add, ir::OpKind::sub, ir::OpKind::mul, ir::OpKind::div})) return Remedy::none;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const ir::Tensor& operand = graph.tensor(op.inputs[i]);
    const bool divides = op.kind == ir::OpKind::div && i == 0;  // the image divides a constant: no filter can do this
    if (operand.is_constant() && !divides && is_by_channel(operand.shape, graph.tensor(op.outputs[0]).shape))
      return Remedy::fold;
  }
  return Remedy::none;
}

Remedy remedy_of_op(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  bool has_bytes = false, has_floats = false;
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (const ir::TensorId tensor : *list) {
      if (tensor == ir::kNoTensor) continue;
      const ir::Tensor& one = graph.tensor(tensor);
      if (one.is_variable || one.shape.elems() == 0) return Remedy::none;
      has_floats = has_floats || one.dtype == ir::DType::float32;
      has_bytes = has_bytes || (ir::is_8bit(one.dtype) && !one.quant.empty());
    }
  }
  if (has_bytes && op.kind == ir::OpKind::tile && repeats_pixels(graph, op)) return Remedy::upsample;
  if (has_bytes) return other_op(graph, op);
  return has_floats && runs_as_bytes(graph, op) ? Remedy::quantize : Remedy::none;
}

}  // namespace skillet::npu
