#include "compile/prefix.h"

#include <algorithm>

namespace skillet::compile {

ir::Graph prefix(const ir::Graph& part, size_t count) {
  ir::Graph graph = part;
  graph.ops.resize(count);
  graph.inputs.clear();
  graph.outputs.clear();
  const std::vector<ir::OpId> producers = ir::producers(graph);
  const auto consumers = ir::consumers(part);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const auto id = static_cast<ir::TensorId>(i);
    const auto is_read = [&](bool before) {
      return std::ranges::any_of(consumers[i],
                                 [&](ir::OpId op) { return (static_cast<size_t>(op) < count) == before; });
    };
    if (producers[i] < 0) {
      if (!graph.tensor(id).is_constant() && is_read(true)) graph.inputs.push_back(id);
    } else if (is_read(false) || std::ranges::count(part.outputs, id) != 0) {
      graph.outputs.push_back(id);
    }
  }
  return graph;
}

}  // namespace skillet::compile
