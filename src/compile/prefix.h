// The beginning of a part, to find the op that its program fails at.
// Called by compile().
// Must not know: targets.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::compile {

// The first `count` ops of a part as a graph that returns all that the others, or the part's readers, want of them.
ir::Graph prefix(const ir::Graph& part, size_t count);

}  // namespace skillet::compile
