// Additions that the preceding convolution does in its own pass, with the same bits as in two passes.
// Called by placement.cpp (which additions), lower_elements.cpp.
// Must not know: tasks, registers, memory.
#pragma once

#include <vector>

#include "npus/rockchip/compiler/operations.h"

namespace skillet::npus::rockchip {

// By op: for an ADD, the convolution that makes one of its operands for it alone; for that convolution, the ADD; else
// -1.
std::vector<ir::OpId> fusable_additions(const ir::Graph& graph);

// Makes `conv` compute the sum of its result and the other operand of `sum`, the addition that read it. False: this is
// not possible, and nothing is changed.
bool fuse(Conv& conv, const Conv& sum);

}  // namespace skillet::npus::rockchip
