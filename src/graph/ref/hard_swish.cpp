#include "graph/ref/hard_swish.h"

#include <algorithm>

#include "base/fixed_point.h"

namespace skillet::ref {
namespace {

constexpr int32_t kMin16 = INT16_MIN, kMax16 = INT16_MAX;

int16_t high_half(int32_t multiplier) {
  constexpr int32_t kRounding = 1 << 15;
  if (multiplier >= INT32_MAX - kRounding) return INT16_MAX;
  return static_cast<int16_t>((multiplier + kRounding) >> 16);
}

// a * b / 2^15, rounded to nearest.
int16_t rounding_doubling_high_mul(int16_t a, int16_t b) {
  if (a == b && a == kMin16) return INT16_MAX;
  return static_cast<int16_t>((int32_t{a} * b + (1 << 14)) >> 15);
}

// The same, rounded towards zero.
int16_t truncating_doubling_high_mul(int16_t a, int16_t b) {
  if (a == b && a == kMin16) return INT16_MAX;
  return static_cast<int16_t>(int32_t{a} * b / (1 << 15));
}

int16_t saturating_shift_left(int16_t value, int amount) {
  const int64_t shifted = int64_t{value} * (int64_t{1} << std::min(amount, 31));
  return static_cast<int16_t>(std::clamp<int64_t>(shifted, kMin16, kMax16));
}

// x / 2^exponent, rounded to nearest. Beyond the bits of the type TFLite's mask is all ones: only the sign remains.
int16_t divide_by_pot(int16_t x, int exponent) {
  constexpr int kBits = 15;
  if (exponent > kBits) return x < 0 ? -1 : 1;
  return static_cast<int16_t>(rounding_divide_by_pot(x, exponent));
}

}  // namespace

HardSwish hard_swish_params(const ir::Quant& input, const ir::Quant& output) {
  const float hires_input_scale = (1.0F / 128.0F) * input.scale();
  const float reluish_scale = 3.0F / 32768.0F;
  const auto to_output = quantize_multiplier(hires_input_scale / output.scale());
  const auto to_reluish = quantize_multiplier(hires_input_scale / reluish_scale);
  return {.input_zero_point = input.zero_point(),
          .output_zero_point = output.zero_point(),
          .output_multiplier = high_half(to_output.multiplier),
          .reluish_multiplier = high_half(to_reluish.multiplier),
          .output_exponent = to_output.shift,
          .reluish_exponent = to_reluish.shift};
}

int32_t hard_swish(const HardSwish& params, int32_t value) {
  const auto hires = static_cast<int16_t>((value - params.input_zero_point) * 128);
  const int16_t preshift = rounding_doubling_high_mul(hires, params.output_multiplier);
  // x / 3 saturated to [-1, 1): all but the last bit is shifted before the multiplication, where saturation does no
  // harm.
  int16_t reluish = hires;
  const int exponent = params.reluish_exponent;
  if (exponent > 0) reluish = saturating_shift_left(reluish, exponent - 1);
  reluish = rounding_doubling_high_mul(reluish, params.reluish_multiplier);
  if (exponent > 0) reluish = saturating_shift_left(reluish, 1);
  if (exponent < 0) reluish = static_cast<int16_t>(divide_by_pot(reluish, -exponent));
  reluish = static_cast<int16_t>((reluish + (1 << 15)) >> 1);  // to [0, 1)
  const int16_t product = truncating_doubling_high_mul(reluish, preshift);
  return divide_by_pot(product, -params.output_exponent) + params.output_zero_point;
}

}  // namespace skillet::ref
