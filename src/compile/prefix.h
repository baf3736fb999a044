// The first ops of a part, to find the op that its program fails at.
// Called by compile().
// Must not know: targets.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::compile {

// The first `count` ops of a part as a graph. It returns all tensors that later ops, or readers of the part, need.
ir::Graph prefix(const ir::Graph& part, size_t count);

}  // namespace skillet::compile
