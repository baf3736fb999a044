// Elementwise ops of one operand. An 8-bit operand has 256 values, so prepare() evaluates TFLite's formula for each of
// them and running is a table look-up; float32 is computed directly.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ref/hard_swish.h"
#include "ref/kernel.h"

namespace skillet::ref {
namespace {

// f(value) -> int32 result, clamped to the output type; `value` is the quantized input.
template <typename F>
Result<KernelPtr> table_kernel(const Context& c, F f) {
  SK_TRY(c.need_quantized(c.input(0)));
  SK_TRY(c.need_quantized(c.output()));
  const Range range = type_range(c.output().dtype);
  std::array<uint8_t, 256> table{};
  for (int raw = 0; raw < 256; ++raw) {
    const int32_t value = c.input(0).dtype == ir::DType::int8 ? static_cast<int8_t>(raw) : raw;
    table[static_cast<size_t>(raw)] = static_cast<uint8_t>(std::clamp(f(value), range.min, range.max));
  }
  return make_kernel([table, in = c.input_index(0), out = c.output_index()](Tensors t) {
    std::transform(t[in].begin(), t[in].end(), t[out].begin(), [&](uint8_t raw) { return table[raw]; });
  });
}

template <typename F>
Result<KernelPtr> float_kernel(const Context& c, F f) {
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return make_kernel([f, count = elem_count(c.input(0)), in = c.input_index(0), out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < count; ++i) elements<float>(t[out])[i] = f(load_element<float>(t[in], i));
  });
}

bool is_float(const Context& c) { return c.input(0).dtype == ir::DType::float32; }

// TFLite's LUTPopulate: a function of reals, all in float.
template <typename F>
Result<KernelPtr> real_function(const Context& c, F f) {
  if (is_float(c)) return float_kernel(c, f);
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  const float inverse_scale = 1 / out.scale();
  return table_kernel(c, [&](int32_t value) {
    const float real = in.scale() * static_cast<float>(value - in.zero_point());
    return round_to_int(f(real) * inverse_scale) + out.zero_point();
  });
}

// The quotient is rounded to float first, as in TFLite: it decides how ties round.
QuantizedMultiplier scale_ratio(const Context& c) {
  return quantize_multiplier(c.input(0).quant.scale() / c.output().quant.scale());
}

Result<KernelPtr> relu_family(const Context& c, ir::Activation activation) {
  if (is_float(c)) {
    SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, activation));
    return float_kernel(c, [range](float x) { return std::min(std::max(x, range.min), range.max); });
  }
  SK_TRY(c.need_quantized(c.input(0)));
  SK_TRY(c.need_quantized(c.output()));
  SK_TRY_ASSIGN(const Range range, activation_range(c, activation, c.output()));
  const auto by = scale_ratio(c);
  return table_kernel(c, [&](int32_t value) {
    const int32_t scaled = multiply_by_quantized_multiplier(value - c.input(0).quant.zero_point(), by);
    return std::clamp(wrapping_add(scaled, c.output().quant.zero_point()), range.min, range.max);
  });
}

}  // namespace

Result<KernelPtr> prepare_relu(const Context& c) { return relu_family(c, ir::Activation::relu); }
Result<KernelPtr> prepare_relu6(const Context& c) { return relu_family(c, ir::Activation::relu6); }
Result<KernelPtr> prepare_relu_n1_to_1(const Context& c) { return relu_family(c, ir::Activation::relu_n1_to_1); }

Result<KernelPtr> prepare_leaky_relu(const Context& c) {
  const float alpha = c.attrs<ir::LeakyReluAttrs>().alpha;
  if (is_float(c)) return float_kernel(c, [alpha](float x) { return x > 0 ? x : x * alpha; });
  const auto identity = scale_ratio(c);
  const auto slope = quantize_multiplier(c.input(0).quant.scale() * alpha / c.output().quant.scale());
  return table_kernel(c, [&](int32_t value) {
    const int32_t centred = value - c.input(0).quant.zero_point();
    const int32_t scaled = multiply_by_quantized_multiplier(centred, centred >= 0 ? identity : slope);
    return wrapping_add(scaled, c.output().quant.zero_point());
  });
}

Result<KernelPtr> prepare_abs(const Context& c) {
  if (is_float(c)) return float_kernel(c, [](float x) { return std::abs(x); });
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  const auto by = scale_ratio(c);
  return table_kernel(c, [&](int32_t value) {
    const int32_t magnitude = std::abs(value - in.zero_point());
    const bool rescale = in.scale() != out.scale();
    return wrapping_add(rescale ? multiply_by_quantized_multiplier(magnitude, by) : magnitude, out.zero_point());
  });
}

Result<KernelPtr> prepare_neg(const Context& c) {
  return float_kernel(c, [](float x) { return -x; });
}

Result<KernelPtr> prepare_sqrt(const Context& c) {
  return float_kernel(c, [](float x) { return std::sqrt(x); });
}

Result<KernelPtr> prepare_logistic(const Context& c) {
  return real_function(c, [](float x) { return 1.0F / (1.0F + std::exp(-x)); });
}

Result<KernelPtr> prepare_tanh(const Context& c) {
  return real_function(c, [](float x) { return std::tanh(x); });
}

Result<KernelPtr> prepare_elu(const Context& c) {
  return real_function(c, [](float x) { return x < 0 ? std::expm1(x) : x; });
}

Result<KernelPtr> prepare_exp(const Context& c) {
  return real_function(c, [](float x) { return std::exp(x); });
}

Result<KernelPtr> prepare_hard_swish(const Context& c) {
  if (is_float(c)) {
    return float_kernel(c, [](float x) { return x * std::min(6.0F, std::max(0.0F, x + 3)) / 6; });
  }
  const HardSwish params = hard_swish_params(c.input(0).quant, c.output().quant);
  if (params.output_exponent > 0) return c.unsupported("output scale is too small for the input scale");
  return table_kernel(c, [&](int32_t value) { return hard_swish(params, value); });
}

}  // namespace skillet::ref
