#include <algorithm>

#include "driver/driver.h"

namespace skillet::driver {
namespace {

Remedy other_op(ir::OpKind kind) {
  switch (kind) {
    case ir::OpKind::mean:
    case ir::OpKind::average_pool_2d: return Remedy::average;
    case ir::OpKind::mirror_pad: return Remedy::zeros;
    case ir::OpKind::resize_bilinear:
    case ir::OpKind::transpose_conv:
    case ir::OpKind::depth_to_space: return Remedy::nearest;
    case ir::OpKind::space_to_batch_nd:
    case ir::OpKind::batch_to_space_nd: return Remedy::dilation;
    case ir::OpKind::dequantize: return Remedy::keep_bytes;
    case ir::OpKind::pack:
    case ir::OpKind::unpack:
    case ir::OpKind::split_v: return Remedy::channels;
    default: return Remedy::none;
  }
}

// A TILE that repeats each pixel: only where there was one, beside axes that it leaves.
bool repeats_pixels(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape &from = graph.tensor(op.inputs[0]).shape, &to = graph.tensor(op.outputs[0]).shape;
  bool out = from.rank() > 4 && from.rank() == to.rank();
  for (int i = 0; out && i < from.rank(); ++i) out = from.back(i) == to.back(i) || from.back(i) == 1;
  return out;
}

}  // namespace

Remedy remedy_of_constant(ir::OpKind kind) {
  return kind == ir::OpKind::minimum || kind == ir::OpKind::maximum ? Remedy::clip : Remedy::fold;
}

Remedy remedy_of_op(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  bool has_bytes = false;
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (const ir::TensorId tensor : *list) {
      if (tensor == ir::kNoTensor) continue;
      const ir::Tensor& one = graph.tensor(tensor);
      if (one.is_variable || one.shape.elems() == 0) return Remedy::none;
      has_bytes = has_bytes || (ir::is_8bit(one.dtype) && !one.quant.empty());
    }
  }
  if (has_bytes && op.kind == ir::OpKind::tile && repeats_pixels(graph, op)) return Remedy::upsample;
  return has_bytes ? other_op(op.kind) : Remedy::none;
}

}  // namespace skillet::driver
