// Depthwise convolution of 16-bit rows to bytes, vectorised for the current CPU.
// Called by the kernel of graph/ref/, which makes the rows. Must not know: tensors, padding, dilation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd/gemm.h"

namespace skillet::depthwise {

// Vectors may read this many elements beyond the last pixel of a tap.
constexpr size_t kReadBeyond = 64;

// Weights and requantization parameters, in the order in which run() reads them.
struct Filter {
  size_t taps = 0, channels = 0;
  size_t step = 0;    // elements from one pixel of a tap to the next
  size_t block = 0;   // elements of a vector
  size_t pixels = 1;  // pixels per vector
  std::vector<int16_t> weights;
  std::vector<int32_t> bias, multiplier, shift;
  int32_t output_zero_point = 0, clamp_min = 0, clamp_max = 0;
};
// `weights` is [taps][channels], with the zero point subtracted; `how` has a bias.
Filter pack(const int16_t* weights, size_t taps, size_t channels, size_t step, const gemm::Requantize& how);

// out[p][i] = requantized(sum over t of taps[t][p * step + i] * weights[t][i]), modulo 2^32, for a row of `pixels`. An
// odd number of taps is followed by one more, which does not affect results.
void run(const Filter& filter, const int16_t* const* taps, size_t pixels, uint8_t* out);
void run(const Filter& filter, const int16_t* const* taps, size_t pixels, int8_t* out);

}  // namespace skillet::depthwise
