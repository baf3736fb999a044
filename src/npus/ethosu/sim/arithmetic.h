// Scaling and rounding of the NPU, implemented only here (hardware specification, sections 4.6 and 8.2).
// Called by the files of npus/ethosu/sim.
// Must not know: registers, memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "npus/ethosu/hw/ethosu.h"

namespace skillet::sim::ethosu {

namespace hw = ::skillet::ethosu::hw;

struct Scale {
  uint32_t scale = 1;
  uint32_t shift = 0;  // 0 to 63
};

// Only damaged scales give values that no register holds. They are limited so that the sum of two fits 64 bits.
constexpr int64_t limited(__int128 value) {
  constexpr __int128 kMost = (__int128{1} << 62) - 1;
  return static_cast<int64_t>(std::clamp(value, -kMost, kMost));
}

// value * scale / 2^shift, rounded. `twice`: TFLite's double rounding, for operands shifted left by `operand_bits`; 0:
// for results.
constexpr int64_t rescale(int64_t value, Scale by, hw::Rounding rounding, uint32_t operand_bits = 0) {
  using Wide = __int128;
  const Wide half = by.shift > 0 ? Wide{1} << (by.shift - 1) : Wide{0};
  Wide round = half;
  if (rounding == hw::Rounding::truncate) {
    round = value >= 0 ? Wide{0} : (Wide{1} << by.shift) - 1;
  } else if (rounding == hw::Rounding::twice && by.shift > 31 - operand_bits) {
    const Wide first = Wide{1} << (30 - operand_bits);
    round += value >= 0 ? first : -first;
  }
  return limited((Wide{value} * by.scale + round) >> by.shift);
}

// The scale that divides a sum of `count` values, rounding half away from zero.
constexpr Scale scale_of_average(uint32_t count) {
  const auto bits = static_cast<uint32_t>(std::bit_width(count - 1));
  const uint64_t least = (uint64_t{1} << (31 + bits)) + (uint64_t{1} << bits);
  return {static_cast<uint32_t>(least / count), 31 + bits};
}

}  // namespace skillet::sim::ethosu
