// Integer matrix multiply and the loops around it (widening, requantization), vectorised for the current CPU.
// Called by the convolutions of graph/ref/ and of the simulators, and tested against their plain loops.
// Must not know: tensors, layouts, chips.
#pragma once

#include <cstddef>
#include <cstdint>

namespace skillet::gemm {

// Rows of both matrices are zero padded to a multiple of this many elements.
constexpr size_t kDepthAlign = 32;

// c[r][n] = sum over k of a[r][k] * b[n][k], modulo 2^32 (both matrices row-major, so that is a * b^T).
// Strides are in elements. `depth` is a multiple of kDepthAlign; 8-bit operands have their zero point subtracted
// before.
void matmul_i16(const int16_t* a, size_t rows, size_t a_stride, const int16_t* b, size_t cols, size_t b_stride,
                size_t depth, int32_t* c, size_t c_stride);

// out[i] = in[i] - zero_point
void widen(const uint8_t* in, size_t count, int32_t zero_point, int16_t* out);
void widen(const int8_t* in, size_t count, int32_t zero_point, int16_t* out);

// sums[i] += sum over t of weights[t] * in[offsets[t] + i], modulo 2^32: a filter over one plane of bytes. Products
// must fit 32 bits.
void add_taps(const uint8_t* in, const size_t* offsets, const int32_t* weights, size_t taps, size_t count,
              int32_t* sums);

// sums[i] = sum over t of windows[t][i] * weights[t * weight_stride + i], totals[i] = sum over t of windows[t][i]: one
// output pixel of a depthwise convolution over `count` channels.
void depthwise_pixel(const int8_t* const* windows, const int8_t* weights, size_t weight_stride, size_t taps,
                     size_t count, int32_t* sums, int32_t* totals);

// Rounding of a value exactly between two integers: to +inf, to -inf, away from 0, to the even one.
enum class Ties : uint8_t { up, down, away, even };
// One step of fixed-point arithmetic: (value + addend) * multiplier / 2^shift. Arrays have one element per value and
// are borrowed.
struct Step {
  const int32_t* addends = nullptr;      // null: none. Sums are clamped to 32 bits
  const int32_t* multipliers = nullptr;  // null: `multiplier`
  int32_t multiplier = 1;
  int shift = 0;  // 0 to 61
  Ties ties = Ties::even;
  int32_t low = INT32_MIN, high = INT32_MAX;  // the result is clamped to at least `low`, then at most `high`
};
void run_step(const Step& step, size_t count, int32_t* values);
// values[i] = sums[i] + factors[i] * windows[i * window_step], modulo 2^32.
void multiply_add(const int32_t* sums, const int32_t* factors, const int32_t* windows, size_t window_step, size_t count,
                  int32_t* values);
// out[i] = clamp(in[i], low, high) + offset, which fits a byte: its low 8 bits.
void narrow(const int32_t* in, size_t count, int32_t low, int32_t high, int32_t offset, uint8_t* out);

// Conversion of 32-bit sums to 8-bit values; arrays hold one element per channel and are borrowed.
struct Requantize {
  const int32_t* bias = nullptr;        // added first, modulo 2^32; null: none
  const int32_t* multiplier = nullptr;  // Q31, >= 0
  const int32_t* shift = nullptr;       // power of two, -31..30, positive is to the left
  int32_t output_zero_point = 0;
  int32_t clamp_min = 0, clamp_max = 0;
};

// out[r][i] = clamp(multiply_by_quantized_multiplier(acc[r][i] + bias[i], multiplier[i], shift[i]) +
// output_zero_point) for rows of `count` channels; see base/fixed_point.h for the rounding.
void requantize(const int32_t* acc, size_t rows, size_t count, const Requantize& how, uint8_t* out);
void requantize(const int32_t* acc, size_t rows, size_t count, const Requantize& how, int8_t* out);

}  // namespace skillet::gemm
