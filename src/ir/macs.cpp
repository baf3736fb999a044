#include "ir/macs.h"

namespace skillet::ir {

uint64_t op_macs(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  const auto elems = [&](TensorId tensor) {
    return tensor == kNoTensor ? 0 : static_cast<uint64_t>(graph.tensor(tensor).shape.elems());
  };
  const auto filter_dim = [&](int from_back) {
    return static_cast<uint64_t>(graph.tensor(op.input(1)).shape.back(from_back));
  };
  if (op.outputs.empty() || op.input(1) == kNoTensor) return 0;
  const uint64_t out = elems(op.outputs[0]);
  switch (op.kind) {
    case OpKind::conv_2d: return out * filter_dim(0) * filter_dim(1) * filter_dim(2);
    case OpKind::depthwise_conv_2d: return out * filter_dim(1) * filter_dim(2);
    case OpKind::transpose_conv: {  // each input element meets the filter once per output channel
      const uint64_t channels_out = static_cast<uint64_t>(graph.tensor(op.outputs[0]).shape.back(0));
      return elems(op.input(2)) * filter_dim(1) * filter_dim(2) * channels_out;
    }
    case OpKind::fully_connected: return out * filter_dim(0);
    default: return 0;
  }
}

}  // namespace skillet::ir
