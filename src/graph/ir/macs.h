// The number of multiply-accumulates of an op, independent of the device.
// Called by compile/ (is a part profitable to offload), the delegate and the tools.
// Must not know: what a device does for an op.
#pragma once

#include <cstdint>

#include "graph/ir/graph.h"

namespace skillet::ir {

// Multiply-accumulates, by the row of its kind in op.def; 0 for ops that have none or whose count is unknown.
uint64_t op_macs(const Graph& graph, OpId op);

}  // namespace skillet::ir
