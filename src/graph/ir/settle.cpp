#include "graph/ir/settle.h"

#include <algorithm>

namespace skillet::ir {

// TFLite's kernels assume zero point 0 for int8 weights. If a file gives another one, TFLite refuses a CONV_2D; its
// other convolutions, and fully connected layers with a scale per channel, ignore it. (Weights of uint8, and of int8
// with one scale in a fully connected layer, do have a zero point.)
Result<void> settle_filter(Graph& graph, OpId id) {
  Op& op = graph.ops[static_cast<size_t>(id)];
  const bool is_layer = op.kind == OpKind::fully_connected, is_transposed = op.kind == OpKind::transpose_conv;
  if (op.kind != OpKind::conv_2d && op.kind != OpKind::depthwise_conv_2d && !is_transposed && !is_layer) return {};
  const size_t input = is_transposed ? 2 : 0, filter = 1;
  if (op.input(input) == kNoTensor || op.input(filter) == kNoTensor) return {};
  const DType activations = graph.tensor(op.inputs[input]).dtype;
  const Tensor& weights = graph.tensor(op.inputs[filter]);
  const auto is_zero = [](int32_t zero_point) { return zero_point == 0; };
  if (weights.dtype != DType::int8 || (activations != DType::int8 && activations != DType::int16)) return {};
  if (std::ranges::all_of(weights.quant.zero_points, is_zero) || (is_layer && !weights.quant.per_channel())) return {};
  if (op.kind == OpKind::conv_2d) {
    return error(ErrorCode::unsupported, "filter {} has a zero point that is not 0, which TensorFlow Lite also refuses",
                 describe_tensor(graph, op.inputs[filter]));
  }
  Tensor settled = weights;  // other ops may read the same tensor and use its zero point
  std::ranges::fill(settled.quant.zero_points, 0);
  op.inputs[filter] = graph.add_tensor(std::move(settled));
  return {};
}

}  // namespace skillet::ir
