// Reads a host's subgraph as ir::Graph.
// Called by compiler.cpp. Must not know: chips, sessions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "frontend/litert/litert_abi.h"
#include "graph/ir/graph.h"

namespace skillet::litert {

// Tensors are in the order in which operations name them; source_index is the operation's index in the subgraph.
// Constants are views of the host's memory.
struct Subgraph {
  ir::Graph graph;
  std::vector<HostOp*> ops;
  std::vector<std::string> refusals;  // by op: why we cannot take it; empty if we may
};
Result<Subgraph> read_subgraph(const Table& host, HostSubgraph* subgraph);

// Error: it has parameters that the host does not pass on, or an unknown value.
Result<ir::Attrs> read_attrs(const Table& host, HostOp* op, ir::OpKind kind);

}  // namespace skillet::litert
