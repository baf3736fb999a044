// What an op costs, whatever computes it.
// Called by compile/ (is a part worth the way to the NPU), the delegate and the tools.
// Must not know: what a device does for an op.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace skillet::ir {

// Multiply-accumulates of a convolution or matrix product; 0 for other ops.
uint64_t op_macs(const Graph& graph, OpId op);

}  // namespace skillet::ir
