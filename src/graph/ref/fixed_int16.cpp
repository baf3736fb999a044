#include "graph/ref/fixed_int16.h"

#include <algorithm>
#include <limits>

#include "base/fixed_point.h"

namespace skillet::ref {
namespace {

constexpr int16_t kMax = std::numeric_limits<int16_t>::max(), kMin = std::numeric_limits<int16_t>::min();

int16_t wrap(int32_t x) { return static_cast<int16_t>(x); }
int16_t saturate(int32_t x) { return static_cast<int16_t>(std::clamp<int32_t>(x, kMin, kMax)); }

// a * b / 2^15, rounded to nearest (halves up), saturated.
int16_t mul(int16_t a, int16_t b) { return saturate((int32_t{a} * b + (1 << 14)) >> 15); }

// x * 2^amount, saturated.
int16_t shift_left(int16_t x, int amount) {
  return static_cast<int16_t>(std::clamp<int64_t>(int64_t{x} * (int64_t{1} << amount), kMin, kMax));
}

// Converts a Q31 constant to 16 bits.
constexpr int16_t narrow(int32_t q31) { return static_cast<int16_t>((int64_t{q31} + (1 << 15)) >> 16); }

// exp(a) for a in [-1/4, 0), both Q15: a Taylor series around -1/8.
int16_t exp_quarter(int16_t a) {
  constexpr int16_t kExpOfMinusEighth = narrow(1895147668), kThird = narrow(715827883);
  const int16_t x = wrap(a + (1 << 12));
  const int16_t x2 = mul(x, x), x3 = mul(x2, x);
  const auto x4_over_4 = static_cast<int16_t>(rounding_divide_by_pot(mul(x2, x2), 2));
  const auto tail = static_cast<int16_t>(rounding_divide_by_pot(wrap(mul(wrap(x4_over_4 + x3), kThird) + x2), 1));
  return saturate(kExpOfMinusEighth + mul(kExpOfMinusEighth, wrap(x + tail)));
}

// exp(x) for x <= 0 with `integer_bits` integer bits.
int16_t exp_on_negative_values(int16_t x, int integer_bits) {
  // exp(-2^k) in Q31 for k = -2 .. 4
  constexpr int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  const int fractional_bits = 15 - integer_bits;
  if (x == 0) return kMax;
  const int quarter = 1 << (fractional_bits - 2);
  const int16_t in_quarter = wrap((x & (quarter - 1)) - quarter);
  int16_t result = exp_quarter(shift_left(in_quarter, integer_bits));
  const int16_t remainder = wrap(in_quarter - x);
  for (int k = -2; k < std::min(integer_bits, 5); ++k) {
    if ((remainder & (1 << (fractional_bits + k))) != 0) result = mul(result, narrow(kPowers[k + 2]));
  }
  // Below this limit the result is 0; the remainder lacks the bits to compute it.
  if (integer_bits > 5 && x < -(1 << (fractional_bits + 5))) result = 0;
  return result;
}

// Newton's method: 1 / (1 + x) * 2 for x in [0, 1], with 2 integer bits.
int16_t two_over_one_plus(int16_t x) {
  constexpr int16_t k48Over17 = narrow(1515870810), kMinus32Over17 = narrow(-1010580540), kOne = 1 << 13;
  const int32_t sum = x + kMax;
  const auto half_denominator = static_cast<int16_t>((sum + 1) / 2);
  int16_t y = wrap(k48Over17 + mul(half_denominator, kMinus32Over17));
  for (int i = 0; i < 3; ++i) {
    const int16_t rest = wrap(kOne - mul(half_denominator, y));
    y = wrap(y + shift_left(mul(y, rest), 2));
  }
  return y;
}

}  // namespace

int16_t fixed_logistic(int16_t x, int integer_bits) {
  if (x == 0) return 1 << 14;
  const int16_t e = exp_on_negative_values(x > 0 ? wrap(-x) : x, integer_bits);
  const int16_t positive = shift_left(two_over_one_plus(e), 1);
  return x > 0 ? positive : wrap(kMax - positive);
}

int16_t fixed_tanh(int16_t x, int integer_bits) {
  if (x == 0) return 0;
  // exp(-2 |x|): the same bits as x, with one more integer bit.
  const int16_t e = exp_on_negative_values(x > 0 ? wrap(-x) : x, integer_bits + 1);
  const int16_t magnitude = shift_left(wrap(two_over_one_plus(e) - (1 << 13)), 2);
  return x > 0 ? magnitude : wrap(-magnitude);
}

}  // namespace skillet::ref
