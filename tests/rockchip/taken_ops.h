// Maps recorded jobs to the operations of a model that they compute.
// Called by replay.cpp, known_faults.cpp.
// Must not know: the simulator.
#pragma once

#include "graph/ir/graph.h"
#include "recorded_ops.h"

namespace skillet::rockchip_replay {

struct Taken {
  RecordedOp op;
  ir::OpId conv = -1, add = -1;  // add: the fused addition
  ir::TensorId input = -1, second = -1, output = -1;
};

// Returns them in the order of their jobs. Error when the model does not contain them.
Result<std::vector<Taken>> match(const ir::Graph& graph, const std::vector<RecordedOp>& recorded);

}  // namespace skillet::rockchip_replay
