// docs/support.md: the operations that each chip takes, according to its compiler.
// Called by main.cpp, and the tests of what is said of refusals.
// Must not know: anything about vendors.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::support {

// Error: a network of the tables cannot be built.
Result<std::string> page();
// Returns all networks of the page, in each type.
Result<std::vector<ir::Graph>> networks();

}  // namespace skillet::support
