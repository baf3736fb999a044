// What the recorded driver makes of a graph: the operations that it takes, and the convolutions that get an addition.
// Hardware specification 8.1.
// Called by lower.cpp.
// Must not know: registers.
#pragma once

#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::npus::rockchip {

struct RecordedConv {
  ir::OpId add = -1;         // the addition that the convolution also computes
  bool in_addition = false;  // it has an addition, or its output is the other operand of one
};
// By op. `strict`: an error names an operation that the recorded driver does not take; else such operations are left
// out.
Result<std::vector<RecordedConv>> recorded_plan(const ir::Graph& graph, bool strict);

}  // namespace skillet::npus::rockchip
