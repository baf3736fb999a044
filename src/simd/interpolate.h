// A row of an image that is resized: each pixel is between four others. Vectorised for the CPU at hand.
// Called by RESIZE_BILINEAR of graph/ref/. Must not know: tensors, how places follow from sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace skillet::interpolate {

// One output coordinate: between element `low` and `high` of the input, `at` of the way (of integers in units of 1 /
// 1024).
template <typename Position>
struct Place {
  size_t low = 0, high = 0;
  Position at = 0;
};

// out[x][i] = what is between the rows `low` and `high` at `down`, and between their pixels of `depth` channels at
// across[x]. Integers are rounded to the nearest, halves away from zero; of uint8 to floats and back, halves upwards.
void row(const int8_t* low, const int8_t* high, int32_t down, std::span<const Place<int32_t>> across, size_t depth,
         int8_t* out);
void row(const uint8_t* low, const uint8_t* high, float down, std::span<const Place<float>> across, size_t depth,
         uint8_t* out);
void row(const float* low, const float* high, float down, std::span<const Place<float>> across, size_t depth,
         float* out);

}  // namespace skillet::interpolate
