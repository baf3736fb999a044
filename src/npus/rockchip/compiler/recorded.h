// What the recorded driver makes of a graph: which operations it takes, and which convolutions it gives an addition.
// Hardware specification 8.1.
// Called by lower.cpp.
// Must not know: registers.
#pragma once

#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::npus::rockchip {

struct RecordedConv {
  ir::OpId add = -1;         // the addition that it computes too
  bool in_addition = false;  // it has one, or its output is the other operand of one
};
// By op. `strict`: an error names the operation that the recorded driver does not take; else such a one is left alone.
Result<std::vector<RecordedConv>> recorded_plan(const ir::Graph& graph, bool strict);

}  // namespace skillet::npus::rockchip
