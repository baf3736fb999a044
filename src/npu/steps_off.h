// By how many steps of its output a chip's result of an op may differ from the CPU's, given the same input.
// Called by `skillet check` and the tests over random graphs and operations.
// Must not know: a vendor's anything.
#pragma once

#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::npu {

// Each byte of the outputs is a byte of an input, or padding.
bool moves_bytes(const ir::Graph& graph, const ir::Op& op);

// Of an op that the driver takes: none where it moves bytes, else as Driver::tolerance() says.
int steps_off(const Driver& driver, const Chip& chip, const ir::Graph& graph, ir::OpId op);

// The chip computes each op with the bits of the CPU, as Driver::tolerance() says.
bool is_exact(const Driver& driver, const Chip& chip, const ir::Graph& graph);

}  // namespace skillet::npu
