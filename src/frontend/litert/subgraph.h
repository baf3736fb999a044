// A host's subgraph as ir::Graph.
// Called by compiler.cpp. Must not know: chips, sessions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "frontend/litert/litert_abi.h"
#include "graph/ir/graph.h"

namespace skillet::litert {

// Tensors in the order in which operations name them; source_index: the operation's place among those that were read.
// Constants are views of the host's memory.
struct Subgraph {
  ir::Graph graph;
  std::vector<HostOp*> ops;
  std::vector<std::string> refusals;  // by op: why it cannot be ours; empty where it may be
};
Result<Subgraph> read_subgraph(const Table& host, HostSubgraph* subgraph);

// Error: it has parameters that the host does not tell, or a value that we do not know.
Result<ir::Attrs> read_attrs(const Table& host, HostOp* op, ir::OpKind kind);

}  // namespace skillet::litert
