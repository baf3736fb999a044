// Any function of a single byte as a table of the TP cores, from the CPU's results for all 256 bytes.
// Called by support.cpp (is the table exact enough?) and lower.cpp.
// Must not know: which function, bit positions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::npus::vivante {

// The input of which each byte alone determines a byte of the output; the other inputs are single constants. -1: there
// is no such input.
int byte_input(const ir::Graph& graph, const ir::Op& op);

// Largest error of a table, in steps of its output.
constexpr double kTableOffMax = 1;

struct ByteTable {
  std::vector<uint32_t> entries;
  double off = 0;          // steps by which a byte's result may differ from the CPU's
  uint8_t zero_point = 0;  // of its input in the job: that of the tensor, unless the table would be too far off
};
// Nothing: the CPU has no kernel for the op.
std::optional<ByteTable> byte_table(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::npus::vivante
