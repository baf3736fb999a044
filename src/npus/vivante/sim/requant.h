// Rounding and requantization of the NN and TP units; the tie rule is only here.
// Called by nn_*.cpp and tp_*.cpp.
// Must not know: descriptors, memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace skillet::sim::vivante {

// How a value exactly between two integers is rounded. The hardware's rule is not known and recorded jobs cannot show
// it (specification 7.3), so it is an option.
enum class TieRule : uint8_t { half_up, half_even, half_away, half_down };

// Whether a tie between `below` and below + 1 is rounded up. `negative`: the value is < 0.
constexpr bool tie_goes_up(int64_t below, bool negative, TieRule rule) {
  switch (rule) {
    case TieRule::half_up: return true;
    case TieRule::half_down: return false;
    case TieRule::half_even: return below % 2 != 0;
    case TieRule::half_away: return !negative;
  }
  return true;
}

// value / 2^shift to the nearest integer; |value| < 2^61.
constexpr int64_t round_shift(int64_t value, int shift, TieRule rule) {
  if (shift == 0) return value;
  if (shift > 62) return 0;  // less than a half
  const int64_t below = value >> shift;
  const int64_t rest = value - (below << shift);
  const int64_t half = int64_t{1} << (shift - 1);
  if (rest == half) return below + (tie_goes_up(below, value < 0, rule) ? 1 : 0);
  return rest > half ? below + 1 : below;
}

inline int64_t round_real(double value, TieRule rule) {
  const double below = std::floor(value);
  const double rest = value - below;
  const auto integer = static_cast<int64_t>(below);
  if (rest == 0.5) return integer + (tie_goes_up(integer, value < 0, rule) ? 1 : 0);
  return rest > 0.5 ? integer + 1 : integer;
}

// Converts an accumulator to an output byte.
struct Requant {
  uint32_t multiplier = 0;  // with its leading 1
  int shift = 0;
  bool relu = false;
  uint8_t zero_point = 0;
  TieRule rule = TieRule::half_up;
};

constexpr uint8_t requantize(int64_t accumulator, const Requant& q) {
  int64_t value = round_shift(accumulator * static_cast<int64_t>(q.multiplier), q.shift, q.rule);
  if (q.relu) value = std::max<int64_t>(value, 0);
  return static_cast<uint8_t>(std::clamp<int64_t>(value + q.zero_point, 0, 255));
}

// The same for many sums, which are overwritten.
void requantize(std::span<int32_t> sums, const Requant& q, uint8_t* out);

}  // namespace skillet::sim::vivante
