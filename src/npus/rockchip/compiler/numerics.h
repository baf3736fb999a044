// Gains as the chip multiplies, and what is known of them. Hardware specification 4.3, 4.5, 5.4, 7.5.
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

// Of the output: the 15-bit mantissa, rounded up. Without `carry` as recorded: a mantissa of all ones goes wrong.
Gain output_gain(float value, bool carry);
// Of an addition's other operand: the mantissa cut off.
Gain operand_gain(float value);
// The 15-bit mantissa that is nearest.
Gain nearest_gain(double value);
inline bool is_valid(Gain gain) { return gain.shift >= 0 && gain.shift <= kShiftMax; }
double value_of(Gain gain);
// As the chip multiplies: to the nearest, halves to the even one.
int64_t multiplied(int64_t value, Gain gain);

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
// The same in steps of the output itself, so that they are rounded once; nothing where gains are too large for that.
std::optional<ChannelGains> whole_step_gains(std::span<const double> gains);

// A sum of two operands in steps of 1/2^out.shift of its own: factors of 15 bits, odd, and a power of two.
struct SumGains {
  int32_t main = 0, other = 0;
  int32_t step_log2 = 0;  // a step of the sum is 2^-step_log2 of the output's
};
// Nothing where the gains are far from 1.
std::optional<SumGains> sum_gains(double main, double other);
constexpr int32_t kOneLog2 = 14;  // of the scale with which the output converter multiplies by a power of two
inline Gain power_of_two(int32_t shift) { return {1 << kOneLog2, shift + kOneLog2}; }

}  // namespace skillet::npus::rockchip
