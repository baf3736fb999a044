// Computes a row of a resized image: each pixel is interpolated between four others. Vectorised for the current CPU.
// Called by RESIZE_BILINEAR of graph/ref/. Must not know: tensors, how positions follow from sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace skillet::interpolate {

// Position of an output coordinate: between elements `low` and `high` of the input, at the fraction `at` (for integers
// in units of 1 / 1024).
template <typename Position>
struct Place {
  size_t low = 0, high = 0;
  Position at = 0;
};

// out[x][i] interpolates between the rows `low` and `high` at `down`, and between their pixels of `depth` channels at
// across[x]. Integers are rounded to nearest, halves away from zero; uint8, computed in floats, halves upwards.
void row(const int8_t* low, const int8_t* high, int32_t down, std::span<const Place<int32_t>> across, size_t depth,
         int8_t* out);
void row(const uint8_t* low, const uint8_t* high, float down, std::span<const Place<float>> across, size_t depth,
         uint8_t* out);
void row(const float* low, const float* high, float down, std::span<const Place<float>> across, size_t depth,
         float* out);

}  // namespace skillet::interpolate
