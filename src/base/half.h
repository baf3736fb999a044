// Values of 16-bit floating point.
// Called by code that reads such tensors.
// Must not know: tensors.
#pragma once

#include <bit>
#include <cstdint>

namespace skillet {

// Every half is exactly a float; the payload of a NaN is kept.
constexpr float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, mantissa = half & 0x3ff;
  const uint32_t exponent = (half >> 10) & 0x1f;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

}  // namespace skillet
