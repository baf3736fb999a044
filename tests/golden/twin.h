// Twins: two models, one signed and one unsigned, otherwise equal: every quantized value q of the signed one is q + 128
// in the other. The chip computes unsigned, so the jobs of one are right for the other. Called by compile_compare.cpp.
// Must not know: chips.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::golden {

bool are_twins(const ir::Graph& is_signed, const ir::Graph& is_unsigned);

}  // namespace skillet::golden
