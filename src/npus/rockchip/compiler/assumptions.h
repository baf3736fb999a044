// The assumptions that an operation's program stands on, by name: rows of assumptions.def.
// Called by support.cpp.
// Must not know: whether the chip takes the operation, registers.
#pragma once

#include <span>
#include <vector>

#include "graph/ir/graph.h"
#include "npu/support.h"

namespace skillet::npus::rockchip {

std::span<const npu::Assumption> assumptions();

// Returns the assumptions of an operation that the chip takes, in the order of the rows, with all tuning that simulated
// devices get.
std::vector<const npu::Assumption*> assumptions_of(const ir::Graph& graph, ir::OpId op);

}  // namespace skillet::npus::rockchip
