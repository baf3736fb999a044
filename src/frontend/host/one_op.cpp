#include "frontend/host/one_op.h"

#include <algorithm>

namespace skillet::host {

ir::Graph only(const ir::Graph& graph, const ir::Op& op) {
  ir::Graph alone;
  ir::Op copy = op;
  std::vector<ir::TensorId> originals;
  const auto add = [&](ir::TensorId id) {
    originals.push_back(id);
    return alone.add_tensor(graph.tensor(id));
  };
  for (ir::TensorId& id : copy.inputs) {
    if (id == ir::kNoTensor) continue;
    const auto known = std::ranges::find(originals, id);
    if (known != originals.end()) {
      id = static_cast<ir::TensorId>(known - originals.begin());
      continue;
    }
    id = add(id);
    const ir::Tensor& tensor = alone.tensor(id);
    if (!tensor.is_constant() && !tensor.is_variable) alone.inputs.push_back(id);
  }
  for (ir::TensorId& id : copy.outputs) alone.outputs.push_back(id = add(id));
  alone.add_op(std::move(copy));
  return alone;
}

}  // namespace skillet::host
