// Rounding and saturation of the Rockchip NPU; all tie rules are here.
// Called by the files of npus/rockchip/sim.
// Must not know: registers, memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace skillet::sim::rockchip {

// How a value exactly between two integers is rounded.
enum class Tie : uint8_t { even, up, away, floor };  // floor: no rounding at all

constexpr bool tie_goes_up(int64_t below, bool negative, Tie tie) {
  switch (tie) {
    case Tie::even: return below % 2 != 0;
    case Tie::up: return true;
    case Tie::away: return !negative;
    case Tie::floor: break;
  }
  return false;
}

// value / 2^shift to the nearest integer; |value| < 2^62, shift 0 to 63.
constexpr int64_t round_shift(int64_t value, unsigned shift, Tie tie) {
  if (shift == 0) return value;
  if (shift > 62) return tie == Tie::floor && value < 0 ? -1 : 0;  // less than a half
  const int64_t below = value >> shift;
  const int64_t rest = value - (below << shift);
  const int64_t half = int64_t{1} << (shift - 1);
  if (tie == Tie::floor) return below;
  if (rest != half) return rest > half ? below + 1 : below;
  return below + (tie_goes_up(below, value < 0, tie) ? 1 : 0);
}

constexpr int32_t saturate32(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}
constexpr int8_t saturate8(int64_t value) { return static_cast<int8_t>(std::clamp<int64_t>(value, -128, 127)); }

}  // namespace skillet::sim::rockchip
