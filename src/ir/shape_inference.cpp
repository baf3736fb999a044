#include "ir/rules.h"

namespace skillet::ir {
namespace {

// TFLite ignores the file's depth multiplier and divides the channel counts.
void infer_depth_multiplier(const Graph& graph, Op& op) {
  auto* attrs = std::get_if<ConvAttrs>(&op.attrs);
  if (op.kind != OpKind::depthwise_conv_2d || attrs == nullptr) return;
  if (op.input(0) == kNoTensor || op.input(1) == kNoTensor) return;
  const Shape &input = graph.tensor(op.inputs[0]).shape, &filter = graph.tensor(op.inputs[1]).shape;
  if (input.rank() == 0 || input.back(0) <= 0 || filter.back(0) % input.back(0) != 0) return;
  attrs->depth_multiplier = filter.back(0) / input.back(0);
}

}  // namespace

Result<void> infer_shapes(Graph& graph) {
  SK_TRY(check_structure(graph));
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    infer_depth_multiplier(graph, graph.ops[i]);
    Result<Shapes> shapes = check_op(graph, graph.ops[i]);
    if (!shapes) return std::move(shapes).error().with_context(describe_op(graph, static_cast<OpId>(i)));
    for (size_t j = 0; j < shapes->size(); ++j) graph.tensor(graph.ops[i].outputs[j]).shape = (*shapes)[j];
  }
  return {};
}

}  // namespace skillet::ir
