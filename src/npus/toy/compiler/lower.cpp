#include "npus/toy/compiler/lower.h"

namespace skillet::npus::toy {

Result<std::vector<Operation>> lower(const hw::ChipRow& chip, const ir::Graph& graph) {
  std::vector<Operation> operations;
  for (ir::OpId id = 0; id < static_cast<ir::OpId>(graph.ops.size()); ++id) {
    if (const npu::Support support = supports(chip, graph, id); !support.ok)
      return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(graph, id), support.reason);
    const ir::Op& op = graph.op(id);
    const ir::Tensor& result = graph.tensor(op.outputs[0]);
    // RELU is the maximum with the byte for 0.
    const int32_t least = op.kind == ir::OpKind::relu ? result.quant.zero_point() : 0;
    operations.push_back({.op = id,
                          .first = op.inputs[0],
                          .second = op.inputs.back(),
                          .result = op.outputs[0],
                          .elems = static_cast<uint32_t>(result.bytes()),
                          .least = static_cast<uint32_t>(least)});
  }
  return operations;
}

}  // namespace skillet::npus::toy
