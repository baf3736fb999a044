// Functions of a single byte, whatever they are, as tables of the TP cores: what the CPU makes of each of the 256.
// Called by support.cpp (is the table exact enough?) and lower.cpp.
// Must not know: which function it is, bit positions.
#pragma once

#include <optional>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::npus::vivante {

// The input of which each byte alone decides a byte of the output; the other inputs are single constants. -1: there is
// none such.
int byte_input(const ir::Graph& graph, const ir::Op& op);

struct ByteTable {
  std::vector<uint32_t> entries;
  double off = 0;  // steps by which a byte's result may differ from the CPU's
};
// Nothing: the CPU has no kernel for it.
std::optional<ByteTable> byte_table(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::npus::vivante
