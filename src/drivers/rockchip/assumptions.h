// What the program of an operation rests on, by name: rows of assumptions.def.
// Called by support.cpp.
// Must not know: whether the chip takes the operation, registers.
#pragma once

#include <span>
#include <vector>

#include "driver/support.h"
#include "ir/graph.h"

namespace skillet::drivers::rockchip {

std::span<const driver::Assumption> assumptions();

// Of an operation that the chip takes, in the order of the rows, with all tuning that simulated devices get.
std::vector<const driver::Assumption*> assumptions_of(const ir::Graph& graph, ir::OpId op);

}  // namespace skillet::drivers::rockchip
