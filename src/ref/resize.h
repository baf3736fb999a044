// Which pixels an image of another size is made of.
// Called by the kernels of ref/ and by drivers that move pixels.
// Must not know: chips.
#pragma once

#include <vector>

#include "ir/op.h"

namespace skillet::ref {

// RESIZE_NEAREST_NEIGHBOR along rows or columns: the input's row of each of the output's.
std::vector<size_t> nearest_taps(int32_t input, int32_t output, const ir::ResizeAttrs& attrs);

}  // namespace skillet::ref
