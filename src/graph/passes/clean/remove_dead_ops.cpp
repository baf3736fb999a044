#include <algorithm>

#include "graph/passes/passes.h"

namespace skillet::passes {

// Walks backwards from the graph's outputs. An op that writes a variable also counts as read: the next run reads it.
void remove_dead_ops(ir::Graph& graph, const Target& /*target*/) {
  std::vector<bool> is_read(graph.tensors.size(), false);
  for (const ir::TensorId id : graph.outputs) is_read[static_cast<size_t>(id)] = true;
  std::vector<ir::Op> kept;
  for (auto op = graph.ops.rbegin(); op != graph.ops.rend(); ++op) {
    const auto touches_state = [&](ir::TensorId id) { return id != ir::kNoTensor && graph.tensor(id).is_variable; };
    const auto is_needed = [&](ir::TensorId id) { return is_read[static_cast<size_t>(id)] || touches_state(id); };
    if (!std::ranges::any_of(op->outputs, is_needed) && !std::ranges::any_of(op->inputs, touches_state)) continue;
    for (const ir::TensorId id : op->inputs) {
      if (id != ir::kNoTensor) is_read[static_cast<size_t>(id)] = true;
    }
    kept.push_back(std::move(*op));
  }
  std::ranges::reverse(kept);
  graph.ops = std::move(kept);
}

}  // namespace skillet::passes
