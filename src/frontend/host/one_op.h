// One operation with its tensors as a graph of its own, to ask about it alone.
// Called where graphs of hosts are read: one odd operation stays with the host and does not cost the whole graph.
// Must not know: hosts, devices.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::host {

ir::Graph only(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::host
