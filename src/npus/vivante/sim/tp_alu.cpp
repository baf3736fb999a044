#include <bit>
#include <cmath>
#include <cstdlib>

#include "npus/vivante/sim/tp_job.h"

namespace skillet::sim::vivante {
namespace {

constexpr int kBias = 15;  // of FP16 and FP21 exponents
constexpr int kHalfMantissaBits = 10;
constexpr int kLongMantissaBits = 15;
constexpr int kFractionBits = 6;  // mantissa bits of an FP16 number below its table index
constexpr int kMultiplierBits = 15;

// Exact: integers of up to 10 bits fit the mantissa.
uint32_t fp16_of(int value) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<uint32_t>(std::abs(value));
  const int exponent = std::bit_width(magnitude) - 1;
  const uint32_t mantissa = (magnitude << (kHalfMantissaBits - exponent)) & ((1U << kHalfMantissaBits) - 1);
  const uint32_t sign = value < 0 ? 1U << 15 : 0;
  return sign | static_cast<uint32_t>(exponent + kBias) << kHalfMantissaBits | mantissa;
}

}  // namespace

double fp21_value(uint32_t entry) {
  const int exponent = static_cast<int>(entry >> kLongMantissaBits & 0x1f);
  const auto mantissa = static_cast<double>(entry & ((1U << kLongMantissaBits) - 1));
  const double leading = exponent == 0 ? 0.0 : static_cast<double>(1U << kLongMantissaBits);
  const double magnitude = std::ldexp(leading + mantissa, std::max(exponent, 1) - kBias - kLongMantissaBits);
  return entry >> 20 & 1 ? -magnitude : magnitude;
}

double table_value(std::span<const uint32_t, kPwlEntriesUsed> table, int difference) {
  const uint32_t pattern = fp16_of(difference);
  const uint32_t index = pattern >> kFractionBits;
  const uint32_t fraction = pattern & ((1U << kFractionBits) - 1);
  const double here = fp21_value(table[index]);
  if (fraction == 0) return here;
  const double next = fp21_value(table[std::min<size_t>(index + 1, kPwlEntriesUsed - 1)]);
  return here + (next - here) * fraction / (1 << kFractionBits);
}

uint8_t TpArithmetic::apply(int difference) const {
  const double value = table == nullptr ? difference : table_value(*table, difference);
  const double scaled =
      std::ldexp(value * ((1 << kMultiplierBits) + static_cast<int>(multiplier)), -shift - kMultiplierBits);
  // Clamps far outside the byte range first, so that the rounding stays within integers.
  const double bounded = std::clamp(scaled, -1024.0, 1024.0);
  return static_cast<uint8_t>(std::clamp<int64_t>(round_real(bounded, rule) + out_zero_point, 0, 255));
}

}  // namespace skillet::sim::vivante
