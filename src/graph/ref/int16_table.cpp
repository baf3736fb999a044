#include "graph/ref/int16_table.h"

#include <algorithm>
#include <cmath>

#include "base/sigmoid_steps.h"

namespace skillet::ref {

template <typename Real, typename F>
Int16Table Int16Table::make(Real in_scale, int in_zero_point, Real out_scale, int out_zero_point, const F& f) {
  constexpr int kSteps = 512;
  constexpr auto kLow = static_cast<Real>(INT16_MIN), kHigh = static_cast<Real>(INT16_MAX);
  const Real in_min = in_scale * static_cast<Real>(INT16_MIN - in_zero_point);
  const Real in_max = in_scale * static_cast<Real>(INT16_MAX - in_zero_point);
  const Real out_min = out_scale * static_cast<Real>(INT16_MIN - out_zero_point);
  const Real out_max = out_scale * static_cast<Real>(INT16_MAX - out_zero_point);
  const Real step = (in_max - in_min) / kSteps, half_step = step / 2;
  const Real by = static_cast<Real>(1 << 16) / (out_max - out_min);
  const auto limited = [&](Real value) {
    return static_cast<int16_t>(std::isnan(value) ? Real{0} : std::min(std::max(value, kLow), kHigh));
  };
  Int16Table table;
  for (int i = 0; i < kSteps; ++i) {
    const Real at = in_min + static_cast<Real>(i) * step;
    const Real sample = std::round(f(at) * by);
    const Real line = std::round((f(in_min + static_cast<Real>(i + 1) * step) * by + sample) / 2);
    // Half of the line's error at its middle is corrected at its ends.
    const Real bias = std::round((line - std::round(f(at + half_step) * by)) / 2);
    table.steps_[static_cast<size_t>(i)] = limited(sample - bias);
  }
  table.steps_[kSteps] = limited(std::round(f(in_max) * by));
  return table;
}

Int16Table Int16Table::of_float(const ir::Quant& in, const ir::Quant& out, const std::function<float(float)>& f) {
  return make<float>(in.scale(), in.zero_point(), out.scale(), out.zero_point(), f);
}

Int16Table Int16Table::of_double(double in_scale, int in_zero_point, double out_scale,
                                 const std::function<double(double)>& f) {
  return make<double>(in_scale, in_zero_point, out_scale, 0, f);
}

namespace {

int32_t scaled(int16_t value, const SigmoidInput& input) {
  const int64_t half = input.right_shift > 0 ? int64_t{1} << (input.right_shift - 1) : 0;
  return static_cast<int32_t>((int64_t{value} * input.multiplier + half) >> input.right_shift);
}

// Interpolates in a table with steps of 2^bits; the result is the value times 2^bits.
int32_t on_line(uint32_t at, int bits, uint32_t beyond) {
  const uint32_t i = at >> bits;
  if (i >= 255) return static_cast<int32_t>(beyond);
  const uint32_t low = kSigmoidSteps[i], high = kSigmoidSteps[i + 1];
  return static_cast<int32_t>((low << bits) + (at & ((1U << bits) - 1)) * (high - low));
}

}  // namespace

SigmoidInput sigmoid_input(float scale) {
  constexpr float kSteps = 4096;
  // Scales of 2^-12 and 2^-11 need no rounding.
  if (scale == 1 / kSteps) return {3, 0};
  if (scale == 2 / kSteps) return {6, 0};
  double multiplier = static_cast<double>(scale) * 4096 * 3;
  SigmoidInput input;
  for (; multiplier <= 32767.0 / 2 && input.right_shift <= 30; ++input.right_shift) multiplier *= 2;
  input.multiplier = static_cast<int32_t>(std::min(multiplier, static_cast<double>(INT16_MAX)));
  return input;
}

int16_t int16_logistic(int16_t value, const SigmoidInput& input) {
  const int32_t x = scaled(value, input);
  const int32_t y = on_line(static_cast<uint32_t>(std::abs(x)), 9, 0x7fffU << 10);
  return static_cast<int16_t>((x >= 0 ? y + (1 << 9) : (1 << 25) - y + (1 << 9) - 1) >> 10);
}

// 2 * logistic(2 * x) - 1
int16_t int16_tanh(int16_t value, const SigmoidInput& input) {
  const int32_t x = scaled(value, input);
  const int32_t y = on_line(static_cast<uint32_t>(std::abs(x)), 8, 0xffffU << 8);
  return static_cast<int16_t>((x >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1) >> 8);
}

}  // namespace skillet::ref
