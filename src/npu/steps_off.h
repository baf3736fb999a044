// Maximum difference, in steps of the output, between a chip's result of an op and the CPU's for the same input.
// Called by `skillet check` and the tests over random graphs and operations.
// Must not know: anything of one vendor.
#pragma once

#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::npu {

// True if each byte of the outputs is a byte of an input, or padding.
bool moves_bytes(const ir::Graph& graph, const ir::Op& op);

// For an op that the driver takes: 0 if it only moves bytes, else Driver::tolerance().
int steps_off(const Driver& driver, const Chip& chip, const ir::Graph& graph, ir::OpId op);

// True if the chip computes the CPU's bits for each op, by Driver::tolerance().
bool is_exact(const Driver& driver, const Chip& chip, const ir::Graph& graph);

}  // namespace skillet::npu
