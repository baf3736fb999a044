#include "vendor_operands.h"

#include <cmath>

namespace skillet::golden {

bool has_slope(const Words& words) { return value_of(words, 0x4060) == 0x402; }
bool multiplies(const Words& words) { return value_of(words, 0x407C) == 0x810F4094; }

Bytes operand_tensor(int32_t addend, int16_t factor, uint32_t shifts) {
  constexpr size_t kCopyAt = 16, kFactorAt = 32, kShiftAt = 48;
  Bytes bytes(kOperandBytes);
  store_le(bytes.data(), addend);
  store_le(bytes.data() + kCopyAt, addend);
  store_le(bytes.data() + kFactorAt, factor);
  store_le(bytes.data() + kShiftAt, shifts);
  return bytes;
}

uint32_t slope_shifts(uint32_t shifts) { return shifts - kSlopeShift; }

Bytes slope_operand(double larger) { return operand_tensor(0, static_cast<int16_t>(std::lrint(kSlope * larger)), 0); }

}  // namespace skillet::golden
