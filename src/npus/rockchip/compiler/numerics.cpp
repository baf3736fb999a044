#include "npus/rockchip/compiler/numerics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace skillet::npus::rockchip {
namespace {

constexpr int32_t kShiftOrigin = 141;  // of a biased exponent: 127 + 14
constexpr int32_t kMultiplierShift = 15;
constexpr double kProductSteps = 8;  // least number of steps of a product in a step of the output
constexpr double kMultiplierMax = 32767;

int32_t biased_exponent(uint32_t bits) { return static_cast<int32_t>(bits >> 23 & 255); }

}  // namespace

Gain output_gain(float value, bool carry) {
  const auto bits = std::bit_cast<uint32_t>(value);
  Gain gain{.scale = 0, .shift = kShiftOrigin - biased_exponent(bits)};
  if (!carry) {
    gain.scale = static_cast<int32_t>((bits >> 9 & 0x7FFF) + 1);
    if (gain.scale < 0x4000) gain.scale |= 0x4000;
    return gain;
  }
  gain.scale = static_cast<int32_t>((bits >> 9 & 0x3FFF) | 0x4000) + 1;
  if (gain.scale == 0x8000) gain = {0x4000, gain.shift - 1};
  return gain;
}

Gain operand_gain(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return {static_cast<int32_t>((bits >> 9 & 0x3FFF) | 0x4000), kShiftOrigin - biased_exponent(bits)};
}

Gain nearest_gain(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  Gain gain{static_cast<int32_t>(std::rint(std::ldexp(mantissa, kOneLog2 + 1))), kOneLog2 + 1 - exponent};
  if (gain.scale == 2 << kOneLog2) gain = {1 << kOneLog2, gain.shift - 1};
  return gain;
}

double value_of(Gain gain) { return std::ldexp(gain.scale, -gain.shift); }

int64_t multiplied(int64_t value, Gain gain) {
  return std::llrint(std::ldexp(static_cast<double>(value) * gain.scale, -gain.shift));
}

bool recorded_truncates(float weight_scale) {
  constexpr std::array<uint32_t, 15> kScales = {0x3A88323F, 0x3C0060DE, 0x3C06022D, 0x3C1642E3, 0x3C1E3F51,
                                                0x3C5C8AA8, 0x3C615E93, 0x3C7326A2, 0x3C783013, 0x3D1748E6,
                                                0x3D282992, 0x3D2E87AE, 0x3D77F5F6, 0x3A9A5956, 0x3CAEBC56};
  return std::ranges::find(kScales, std::bit_cast<uint32_t>(weight_scale)) != kScales.end();
}

ChannelGains channel_gains(std::span<const double> gains) {
  const double largest = std::ranges::max(gains);
  ChannelGains out;
  const double more_bits = std::ceil(std::log2(std::max(largest * kProductSteps, 1.0)));
  out.shift = kMultiplierShift - static_cast<int32_t>(std::min<double>(more_bits, kMultiplierShift));
  out.out = output_gain(static_cast<float>(std::ldexp(largest, out.shift) / kMultiplierMax), true);
  for (const double gain : gains) {
    const double exact = std::ldexp(gain / value_of(out.out), out.shift);
    out.multipliers.push_back(static_cast<int16_t>(std::min(std::round(exact), kMultiplierMax)));
  }
  return out;
}

namespace {

// Bits by which a number above 0 can be shifted left and stay below 2^15.
int32_t room_log2(double largest) {
  int exponent = 0;
  std::frexp(kMultiplierMax / largest, &exponent);
  return exponent - 1;
}

}  // namespace

std::optional<ChannelGains> whole_step_gains(std::span<const double> gains) {
  ChannelGains out{.out = power_of_two(0), .shift = room_log2(std::ranges::max(gains)), .multipliers = {}};
  if (out.shift < 0 || out.shift > kShiftMax) return std::nullopt;
  for (const double gain : gains)
    out.multipliers.push_back(static_cast<int16_t>(std::round(std::ldexp(gain, out.shift))));
  return out;
}

std::optional<SumGains> sum_gains(double main, double other) {
  constexpr int32_t kStepMin = 2, kStepMax = 40;
  const int32_t step = room_log2(std::max(main, other));
  if (step < kStepMin || step > kStepMax) return std::nullopt;
  const auto odd = [&](double gain) { return 2 * static_cast<int32_t>(std::floor(std::ldexp(gain, step) / 2)) + 1; };
  return SumGains{odd(main), odd(other), step};
}

}  // namespace skillet::npus::rockchip
