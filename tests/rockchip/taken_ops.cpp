#include "taken_ops.h"

namespace skillet::rockchip_replay {
namespace {

bool is_conv(ir::OpKind kind) { return kind == ir::OpKind::conv_2d || kind == ir::OpKind::depthwise_conv_2d; }

bool is_operation(const ir::Graph& graph, ir::OpId id, const RecordedOp& r) {
  const ir::Op& op = graph.op(id);
  if (!is_conv(op.kind)) return false;
  const ir::Shape& filter = graph.tensor(op.inputs[1]).shape;
  const auto u32 = [](int32_t v) { return static_cast<uint32_t>(v); };
  return u32(graph.tensor(op.inputs[0]).shape.back(0)) == r.in_channels &&
         u32(graph.tensor(op.outputs[0]).shape.back(0)) == r.out_channels &&
         // The recorded driver swaps rows and columns.
         (u32(filter.back(2)) == r.kernel_width || u32(filter.back(1)) == r.kernel_width);
}

}  // namespace

// The recorded driver takes operations in graph order, and fuses an addition into the producer of its first operand.
Result<std::vector<Taken>> match(const ir::Graph& graph, const std::vector<RecordedOp>& recorded) {
  std::vector<Taken> taken;
  const auto consumers = ir::consumers(graph);
  for (size_t id = 0; id < graph.ops.size() && taken.size() < recorded.size(); ++id) {
    const RecordedOp& r = recorded[taken.size()];
    if (!is_operation(graph, static_cast<ir::OpId>(id), r)) continue;
    const ir::Op& op = graph.ops[id];
    Taken t{.op = r, .conv = static_cast<ir::OpId>(id), .input = op.inputs[0], .output = op.outputs[0]};
    for (const ir::OpId next : consumers[static_cast<size_t>(op.outputs[0])]) {
      const ir::Op& add = graph.op(next);
      if (!r.addition || t.add >= 0 || add.kind != ir::OpKind::add || add.inputs[0] != op.outputs[0]) continue;
      t.add = next;
      t.second = add.inputs[1];
      t.output = add.outputs[0];
    }
    if (r.addition && t.add < 0) return error(ErrorCode::malformed, "op {}: no addition to fuse", id);
    taken.push_back(t);
  }
  if (taken.size() != recorded.size())
    return error(ErrorCode::malformed, "{} recorded operations, {} found in the model", recorded.size(), taken.size());
  return taken;
}

}  // namespace skillet::rockchip_replay
