#include "tools/model.h"

#include "frontend/tflite/import.h"

namespace skillet::tools {

Result<ir::Graph> import_model(const std::string& path) { return tflite::import_file(path); }

uint64_t op_macs(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const auto elems = [&](ir::TensorId tensor) {
    return tensor == ir::kNoTensor ? 0 : static_cast<uint64_t>(graph.tensor(tensor).shape.elems());
  };
  const auto filter_dim = [&](int from_back) {
    return static_cast<uint64_t>(graph.tensor(op.input(1)).shape.back(from_back));
  };
  if (op.outputs.empty() || op.input(1) == ir::kNoTensor) return 0;
  const uint64_t out = elems(op.outputs[0]);
  switch (op.kind) {
    case ir::OpKind::conv_2d: return out * filter_dim(0) * filter_dim(1) * filter_dim(2);
    case ir::OpKind::depthwise_conv_2d: return out * filter_dim(1) * filter_dim(2);
    case ir::OpKind::transpose_conv: {  // each input element meets the filter once per output channel
      const uint64_t channels_out = static_cast<uint64_t>(graph.tensor(op.outputs[0]).shape.back(0));
      return elems(op.input(2)) * filter_dim(1) * filter_dim(2) * channels_out;
    }
    case ir::OpKind::fully_connected: return out * filter_dim(0);
    default: return 0;
  }
}

}  // namespace skillet::tools
