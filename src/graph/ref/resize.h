// Which pixels an image of another size is made of.
// Called by the kernels of graph/ref/, by passes and by drivers that move pixels.
// Must not know: chips.
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace skillet::ref {

// RESIZE_NEAREST_NEIGHBOR along rows or columns: the input's row of each of the output's.
std::vector<size_t> nearest_taps(int32_t input, int32_t output, const ir::ResizeAttrs& attrs);

// RESIZE_BILINEAR of such elements: each is `from_low` of the way from one row to the other.
struct BilinearTap {
  size_t low = 0, high = 0;
  double from_low = 0;
};
std::vector<BilinearTap> bilinear_taps(ir::DType dtype, int32_t input, int32_t output, const ir::ResizeAttrs& attrs);

}  // namespace skillet::ref
