// ADD, SUB, MUL, DIV and PRELU of int16 activations, whose zero points are 0.
#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/ref/elementwise.h"

namespace skillet::ref {
namespace {

int16_t saturated(int32_t value, Range range) { return static_cast<int16_t>(std::clamp(value, range.min, range.max)); }

// The exponent of a scale that is a power of two; else nothing.
std::optional<int> exponent_of(const ir::Tensor& tensor) {
  int exponent = 0;
  if (std::frexp(tensor.quant.scale(), &exponent) != 0.5F) return std::nullopt;
  return exponent - 1;
}

// Right shift of each operand, if all scales are powers of two, one operand has the output's scale, and the other scale
// is not larger.
struct Shifts {
  int a = 0, b = 0;
};
std::optional<Shifts> power_of_two_shifts(const Context& c) {
  const auto a = exponent_of(c.input(0)), b = exponent_of(c.input(1)), out = exponent_of(c.output());
  if (!c.attrs<ir::ActivationAttrs>().pot_scale_int16 || !a || !b || !out) return std::nullopt;
  const Shifts shifts = {*out - *a, *out - *b};
  if (shifts.a < 0 || shifts.b < 0 || (shifts.a != 0 && shifts.b != 0)) return std::nullopt;
  return shifts;
}

}  // namespace

Result<KernelPtr> prepare_int16_sum(const Context& c, bool subtract) {
  SK_TRY(c.need_int16(2));
  SK_TRY_ASSIGN(const Range range, activation_range(c, c.attrs<ir::ActivationAttrs>().activation, c.output()));
  if (const auto shifts = power_of_two_shifts(c)) {
    const auto f = [range, by = *shifts, subtract](int16_t x, int16_t y) {
      const int32_t a = rounding_divide_by_pot(x, std::min(by.a, 31)),
                    b = rounding_divide_by_pot(y, std::min(by.b, 31));
      return saturated(subtract ? a - b : a + b, range);
    };
    return elementwise<int16_t>(c, f);
  }
  // Both operands are scaled to twice the larger scale with 15 more bits, then added.
  constexpr int kLeftShift = 15;
  const float a_scale = c.input(0).quant.scale(), b_scale = c.input(1).quant.scale();
  const double twice_max = 2 * std::max(a_scale, b_scale);
  const auto by_a = quantize_multiplier(a_scale / twice_max), by_b = quantize_multiplier(b_scale / twice_max);
  const auto by = quantize_multiplier(twice_max / ((1 << kLeftShift) * c.output().quant.scale()));
  return elementwise<int16_t>(c, [=](int16_t x, int16_t y) {
    const int32_t a = multiply_by_quantized_multiplier(x * (1 << kLeftShift), by_a);
    const int32_t b = multiply_by_quantized_multiplier(y * (1 << kLeftShift), by_b);
    return saturated(multiply_by_quantized_multiplier(subtract ? a - b : a + b, by), range);
  });
}

Result<KernelPtr> prepare_int16_mul(const Context& c) {
  SK_TRY(c.need_int16(2));
  SK_TRY_ASSIGN(const Range range, activation_range(c, c.attrs<ir::ActivationAttrs>().activation, c.output()));
  // TFLite computes this multiplier in float.
  const auto by = quantize_multiplier(c.input(0).quant.scale() * c.input(1).quant.scale() / c.output().quant.scale());
  return elementwise<int16_t>(
      c, [=](int16_t x, int16_t y) { return saturated(multiply_by_quantized_multiplier(x * y, by), range); });
}

Result<KernelPtr> prepare_int16_prelu(const Context& c) {
  SK_TRY(c.need_int16(2));
  const float in = c.input(0).quant.scale(), out = c.output().quant.scale();
  const auto identity = quantize_multiplier(in / out), slope = quantize_multiplier(in * c.input(1).quant.scale() / out);
  return elementwise<int16_t>(c, [identity, slope, range = type_range(ir::DType::int16)](int16_t x, int16_t alpha) {
    return saturated(
        x >= 0 ? multiply_by_quantized_multiplier(x, identity) : multiply_by_quantized_multiplier(x * alpha, slope),
        range);
  });
}

}  // namespace skillet::ref
