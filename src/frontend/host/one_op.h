// Makes a graph of one operation and its tensors, to check it alone.
// Called where graphs of hosts are read: an operation that is not valid stays with the host, and the rest is still
// read.
// Must not know: hosts, devices.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::host {

ir::Graph only(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::host
