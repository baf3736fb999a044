// A host's subgraph as ir::Graph.
// Called by compiler.cpp. Must not know: chips, sessions.
#pragma once

#include <span>
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

// Its ops of these places as a graph of their own, as the host will hand them back: what none of them computes is an
// input, what others read or the whole returns an output.
ir::Graph part_of(const Subgraph& whole, std::span<const ir::OpId> ops);

// Error: it has parameters that the host does not tell, or a value that we do not know.
Result<ir::Attrs> read_attrs(const Table& host, HostOp* op, ir::OpKind kind);

}  // namespace skillet::litert
