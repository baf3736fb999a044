// Additions that the convolution in front does in its own pass, with every bit of what two passes compute.
// Called by placement.cpp (which), lower_elements.cpp.
// Must not know: tasks, registers, memory.
#pragma once

#include <vector>

#include "npus/rockchip/compiler/operations.h"

namespace skillet::npus::rockchip {

// By op: of an ADD a convolution that makes one of its operands for it alone, of that the ADD; else -1.
std::vector<ir::OpId> fusable_additions(const ir::Graph& graph);

// `conv` becomes the sum of what it made and of the other operand of `sum`, the addition that read it. False: it
// cannot be, and nothing is changed.
bool fuse(Conv& conv, const Conv& sum);

}  // namespace skillet::npus::rockchip
