// Fixed-point arithmetic of quantized networks: Q31 multipliers with a power-of-two shift, rounded twice.
// Called by graph/ref/ and everything that must agree with it bit for bit. Same results as gemmlowp and TFLite's
// default build. Must not know: anything above base/.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace skillet {

// (a * b * 2) >> 32, rounded to nearest (halves up), saturated: INT32_MIN * INT32_MIN gives INT32_MAX.
constexpr int32_t saturating_rounding_doubling_high_mul(int32_t a, int32_t b) {
  if (a == b && a == std::numeric_limits<int32_t>::min()) return std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>((int64_t{a} * b + (int64_t{1} << 30)) >> 31);
}

// x / 2^exponent, rounded to nearest, halves away from zero. 0 <= exponent <= 31.
constexpr int32_t rounding_divide_by_pot(int32_t x, int exponent) {
  const int32_t mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + ((x & mask) > threshold ? 1 : 0);
}

// x * 2^exponent, modulo 2^32.
constexpr int32_t wrapping_shift_left(int32_t x, int exponent) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) << exponent);
}

constexpr int32_t wrapping_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// A real number as multiplier * 2^(shift - 31), multiplier in [2^30, 2^31) or zero.
struct QuantizedMultiplier {
  int32_t multiplier = 0;
  int32_t shift = 0;  // positive is to the left
  bool operator==(const QuantizedMultiplier&) const = default;
};

// x * multiplier * 2^(shift - 31) with the two roundings of gemmlowp. shift in -31..30.
constexpr int32_t multiply_by_quantized_multiplier(int32_t x, QuantizedMultiplier by) {
  const int left = by.shift > 0 ? by.shift : 0;
  const int right = by.shift > 0 ? 0 : -by.shift;
  return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(wrapping_shift_left(x, left), by.multiplier),
                                right);
}

// The same for a 64-bit sum, modulo 2^32: the multiplier is reduced to 16 bits, and there is one rounding, halves up.
// shift in -31..14; the result is right for |x| < 2^47.
constexpr int32_t multiply_wide_by_quantized_multiplier(int64_t x, QuantizedMultiplier by) {
  const int32_t reduced = by.multiplier < 0x7fff0000 ? (by.multiplier + (1 << 15)) >> 16 : 0x7fff;
  const int shift = 15 - by.shift;
  const uint64_t product = static_cast<uint64_t>(x) * static_cast<uint64_t>(reduced);
  return static_cast<int32_t>(static_cast<int64_t>(product + (uint64_t{1} << (shift - 1))) >> shift);
}

// Nearest quantized multiplier of `real` >= 0. Values below 2^-32 become zero, and so do NaN and infinity; a shift
// above 30 is clamped to the largest value.
inline QuantizedMultiplier quantize_multiplier(double real) {
  if (real == 0.0 || !std::isfinite(real)) return {};
  int shift = 0;
  const double fraction = std::frexp(real, &shift);
  auto fixed = static_cast<int64_t>(std::round(fraction * static_cast<double>(int64_t{1} << 31)));
  if (fixed == int64_t{1} << 31) {
    fixed /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  if (shift > 30) return {std::numeric_limits<int32_t>::max(), 30};
  return {static_cast<int32_t>(fixed), shift};
}

// Multiplier of `by` / `count`, count > 0, as MEAN computes it: first shifted up as far as 32 bits allow.
inline QuantizedMultiplier divide_multiplier(QuantizedMultiplier by, int64_t count) {
  const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(count))) - 1;
  const int shift = std::min({bits, 32, 31 + by.shift});
  return {static_cast<int32_t>((int64_t{by.multiplier} << shift) / count), by.shift - shift};
}

// Largest input magnitude that still fits `integer_bits` after a left shift by `left_shift` (exp and tanh tables).
inline int calculate_input_radius(int integer_bits, int left_shift, int total_signed_bits = 31) {
  const double max = ((1 << integer_bits) - 1) * static_cast<double>(int64_t{1} << (total_signed_bits - integer_bits));
  return static_cast<int>(std::floor(std::ldexp(max, -left_shift)));
}

}  // namespace skillet
