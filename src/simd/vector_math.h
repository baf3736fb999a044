// Element-wise loops, vectorised for the current CPU: floats to bytes and back, maxima of bytes, sums and products of
// quantized bytes. Called by kernels of graph/ref/, and tested against their plain loops. Must not know: tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/fixed_point.h"

namespace skillet::vector_math {

// out[i] = clamp(round(in[i] / scale) + zero_point), halves away from zero; NaN gives the lowest value. `in` may be at
// any address.
void quantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, int8_t* out);
void quantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, uint8_t* out);
void quantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, int16_t* out);

// out[i] = scale * (in[i] - zero_point)
void dequantize(const int8_t* in, size_t count, float scale, int32_t zero_point, float* out);
void dequantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, float* out);

// out[i] = the maximum of in[0][i] .. in[rows - 1][i], clamped. rows >= 1.
void maximum(const int8_t* const* in, size_t rows, size_t count, int8_t low, int8_t high, int8_t* out);
void maximum(const uint8_t* const* in, size_t rows, size_t count, uint8_t low, uint8_t high, uint8_t* out);

// out[i] = table[in[i]]. `in` may be `out`.
void look_up(const uint8_t* in, size_t count, const std::array<uint8_t, 256>& table, uint8_t* out);

// Conversion of an input byte: its distance to the zero point, shifted left, and scaled if `by` is set.
struct Operand {
  int32_t zero_point = 0;
  int left_shift = 0;
  std::optional<QuantizedMultiplier> by;
  size_t step = 1;  // 0: one byte for all elements
};
enum class Combine : uint8_t { sum, difference, product, squared_difference };
struct Combination {
  Combine how = Combine::sum;
  Operand a, b;
  QuantizedMultiplier output;
  int32_t zero_point = 0, min = 0, max = 0;
};
// out[i] = clamp(scaled(a[i] combined with b[i]) + zero point)
void combine(const int8_t* a, const int8_t* b, size_t count, const Combination& c, int8_t* out);
void combine(const uint8_t* a, const uint8_t* b, size_t count, const Combination& c, uint8_t* out);

}  // namespace skillet::vector_math
