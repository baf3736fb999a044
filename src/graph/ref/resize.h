// The source pixels of a resized image.
// Called by the kernels of graph/ref/, by passes and by drivers that move pixels.
// Must not know: chips.
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace skillet::ref {

// RESIZE_NEAREST_NEIGHBOR along rows or columns: the input row of each output row.
std::vector<size_t> nearest_taps(int32_t input, int32_t output, const ir::ResizeAttrs& attrs);

// RESIZE_BILINEAR for a type: a place between two rows, at the fraction `from_low` from `low` to `high`.
struct BilinearTap {
  size_t low = 0, high = 0;
  double from_low = 0;
};
std::vector<BilinearTap> bilinear_taps(ir::DType dtype, int32_t input, int32_t output, const ir::ResizeAttrs& attrs);

}  // namespace skillet::ref
