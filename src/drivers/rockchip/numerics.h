// Gains as the chip multiplies, and what is known of them. Hardware specification 4.3, 4.5, 5.4, 7.5.
// Called by lower.cpp and support.cpp.
// Must not know: graphs, registers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drivers/rockchip/operations.h"

namespace skillet::drivers::rockchip {

constexpr int32_t kShiftMax = 63;

// Of the output: the 15-bit mantissa, rounded up. Without `carry` as recorded: a mantissa of all ones goes wrong.
Gain output_gain(float value, bool carry);
// Of an addition's other operand: the mantissa cut off.
Gain operand_gain(float value);
inline bool is_valid(Gain gain) { return gain.shift >= 0 && gain.shift <= kShiftMax; }
double value_of(Gain gain);

// Scales of weights for which the recorded driver cuts one bit off the sum.
bool recorded_truncates(float weight_scale);

// Scales per channel: one output gain, and a multiplier of 1/2^shift for each channel's sum. A step of the products is
// a small part of a step of the output, whatever the gains.
struct ChannelGains {
  Gain out;
  int32_t shift = 15;
  std::vector<int16_t> multipliers;
};
ChannelGains channel_gains(std::span<const double> gains);

}  // namespace skillet::drivers::rockchip
