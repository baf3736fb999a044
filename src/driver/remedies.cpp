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

}  // namespace

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
  return has_bytes ? other_op(op.kind) : Remedy::none;
}

}  // namespace skillet::driver
