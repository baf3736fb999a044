// Gains as the chip multiplies them, and their known limits. Hardware specification 4.3, 4.5, 5.4, 7.5.
// Called by lower.cpp and support.cpp.
// Must not know: graphs, registers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "npus/rockchip/compiler/operations.h"

namespace skillet::npus::rockchip {

constexpr int32_t kShiftMax = 63;

// The output's gain: the 15-bit mantissa, rounded up. Without `carry`, as recorded: wrong for a mantissa of all ones.
Gain output_gain(float value, bool carry);
// The gain of an addition's other operand: the mantissa, truncated.
Gain operand_gain(float value);
// The nearest 15-bit mantissa.
Gain nearest_gain(double value);
inline bool is_valid(Gain gain) { return gain.shift >= 0 && gain.shift <= kShiftMax; }
double value_of(Gain gain);
// Multiplies as the chip does: rounds to the nearest, halves to even.
int64_t multiplied(int64_t value, Gain gain);

// Scales of weights for which the recorded driver cuts one bit off the sum.
bool recorded_truncates(float weight_scale);

// Scales per channel: one output gain, and a multiplier of 1/2^shift for each channel's sum. A step of the products is
// a small part of a step of the output for all gains.
struct ChannelGains {
  Gain out;
  int32_t shift = 15;
  std::vector<int16_t> multipliers;
};
ChannelGains channel_gains(std::span<const double> gains);
// The same with products in steps of the output, so that they are rounded once; nothing if gains are too large for it.
std::optional<ChannelGains> whole_step_gains(std::span<const double> gains);

// A sum of two operands in its own steps of 1/2^out.shift: odd factors of 15 bits, and a power of two.
struct SumGains {
  int32_t main = 0, other = 0;
  int32_t step_log2 = 0;  // a step of the sum is 2^-step_log2 of the output's
};
// Nothing if the gains are far from 1.
std::optional<SumGains> sum_gains(double main, double other);
constexpr int32_t kOneLog2 = 14;  // of the scale with which the output converter multiplies by a power of two
inline Gain power_of_two(int32_t shift) { return {1 << kOneLog2, shift + kOneLog2}; }

}  // namespace skillet::npus::rockchip
