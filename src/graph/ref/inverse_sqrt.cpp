#include "graph/ref/inverse_sqrt.h"

#include <algorithm>
#include <bit>

namespace skillet::ref {
namespace {

// x * 2^amount, saturated.
int32_t shift_left(int32_t x, int amount) {
  return static_cast<int32_t>(std::clamp<int64_t>(int64_t{x} << amount, INT32_MIN, INT32_MAX));
}

int32_t mul(int32_t a, int32_t b) { return saturating_rounding_doubling_high_mul(a, b); }

}  // namespace

QuantizedMultiplier inverse_sqrt(int32_t x) {
  if (x <= 1) return {INT32_MAX, 0};
  int shift = 11;
  for (; x >= (1 << 29); x /= 4) ++shift;
  const int pairs = (std::countl_zero(static_cast<uint32_t>(x)) - 1) / 2 - 1;
  shift -= pairs;
  x <<= 2 * pairs;
  // Newton's method with 3 integer bits; a product of three values has 9.
  const int32_t half = rounding_divide_by_pot(x >> 1, 1);
  constexpr int32_t kOneAndHalf = (1 << 28) + (1 << 27), kHalfSqrt2 = 1518500250;
  int32_t y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = shift_left(mul(mul(y, y), y), 6);
    y = shift_left(mul(kOneAndHalf, y) - mul(half, cube), 3);
  }
  y = mul(y, kHalfSqrt2);
  if (shift < 0) {
    y = wrapping_shift_left(y, -shift);
    shift = 0;
  }
  return {y, -shift};
}

}  // namespace skillet::ref
