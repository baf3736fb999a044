// docs/support.md: which operations each chip takes, as its compiler answers.
// Called by main.cpp, and the tests of what is said of refusals.
// Must not know: a vendor's anything.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::support {

// Error: a network of the tables cannot be made.
Result<std::string> page();
// All that is asked, in each type.
Result<std::vector<ir::Graph>> networks();

}  // namespace skillet::support
