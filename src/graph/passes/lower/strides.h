// Strides along dimensions of an image that have a single window, where any stride gives the same result.
// Called by remove_strides.cpp, lower_average_as_depthwise.cpp.
// Must not know: which strides a chip takes.
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace skillet::passes {

// True if a dimension of an image has a single window, so that its stride has no effect.
inline bool has_one_window(ir::Padding padding, int32_t size, int64_t window) {
  return padding == ir::Padding::valid ? size == window : size == 1;
}

// Strides that give the same windows, the simplest first: chips support strides of 1 best, then equal ones.
template <typename Attrs>
std::vector<Attrs> with_other_strides(const Attrs& attrs, const ir::Shape& in, int64_t height, int64_t width) {
  if (attrs.rows) return {};
  const bool one_row = has_one_window(attrs.padding, in[1], height);
  const bool one_column = has_one_window(attrs.padding, in[2], width);
  Attrs plain = attrs, equal = attrs;
  if (one_row) plain.stride_h = 1;
  if (one_column) plain.stride_w = 1;
  // Not for images of one row or column, which lower_conv1d handles better.
  if (one_row && !one_column && in[1] > 1) equal.stride_h = equal.stride_w;
  if (one_column && !one_row && in[2] > 1) equal.stride_w = equal.stride_h;
  std::vector<Attrs> out = {plain, equal};
  std::erase(out, attrs);
  return out;
}

}  // namespace skillet::passes
