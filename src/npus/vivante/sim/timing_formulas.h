// Cycles of the NN cores and bytes of an image, tile by tile.
// Called by timing.cpp (jobs), timing_layers.cpp (layers) and the tests.
// Must not know: descriptors, memory, time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/int_math.h"

namespace skillet::sim::vivante {

// Products that a multiplier does at once, by the shape of the filter.
struct Multipliers {
  int64_t cores = 1;
  bool patches = true;  // patches of 3x2 weights of a plane (V7); else the filter is a list, in groups of `depth`
  int64_t patch = 6, depth = 3;
};

// The computation of one job; sizes are before pooling.
struct Shape {
  int64_t out_width = 0, out_height = 0, kernels = 0;
  int64_t in_width = 0, in_height = 0, planes = 0;
  int64_t kernel_width = 1, kernel_height = 1;
  int64_t tile_width = 1, tile_height = 1;
  int64_t superblocks = 1;  // passes over the image
  bool depthwise = false;   // each kernel has one plane
};

constexpr int64_t kPixelsAtOnce = 64;

constexpr int64_t steps_of_filter(const Multipliers& m, const Shape& s) {
  const int64_t planes = s.depthwise ? 1 : s.planes, taps = s.kernel_width * s.kernel_height;
  if (m.patches && s.kernel_width > 1) return ceil_div(taps, m.patch) * planes;
  return ceil_div(planes * taps, m.depth);
}

// Tiles in one direction: `count` of full size, and one of `rest`, if any.
struct Cut {
  int64_t count = 0, rest = 0;
};
constexpr Cut cut(int64_t size, int64_t tile) { return {size / tile, size % tile}; }

// Groups of pixels that are computed together, over all tiles.
constexpr int64_t pixel_groups(const Shape& s) {
  const Cut x = cut(s.out_width, s.tile_width), y = cut(s.out_height, s.tile_height);
  const auto row = [&](int64_t height) {
    return x.count * ceil_div(s.tile_width * height, kPixelsAtOnce) + ceil_div(x.rest * height, kPixelsAtOnce);
  };
  return y.count * row(s.tile_height) + row(y.rest);
}

constexpr int64_t nn_cycles(const Multipliers& m, const Shape& s) {
  return ceil_div(s.kernels, m.cores) * pixel_groups(s) * steps_of_filter(m, s);
}

// Pixels of one plane that all tiles read; pixels that two tiles need count twice, each tile at most the image.
constexpr int64_t pixels_read(const Shape& s) {
  const auto along = [](int64_t out, int64_t tile, int64_t kernel, int64_t in) {
    const Cut c = cut(out, tile);
    return c.count * std::min(tile + kernel - 1, in) + (c.rest > 0 ? std::min(c.rest + kernel - 1, in) : 0);
  };
  const int64_t columns = along(s.out_width, s.tile_width, s.kernel_width, s.in_width);
  const int64_t rows = along(s.out_height, s.tile_height, s.kernel_height, s.in_height);
  return std::max(columns * rows, s.in_width * s.in_height);
}

}  // namespace skillet::sim::vivante
