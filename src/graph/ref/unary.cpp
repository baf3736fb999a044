// Elementwise ops of one operand. An 8-bit operand has 256 values and an int16 one 65536, so prepare() evaluates
// TFLite's formula for each of them and running is a table look-up; float32 is computed directly.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "graph/ref/hard_swish.h"
#include "graph/ref/int16_table.h"
#include "graph/ref/inverse_sqrt.h"
#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// f(value) -> int32 result, clamped to the output type; `value` is the quantized input.
template <typename F>
Result<KernelPtr> table_kernel(const Context& c, F f) {
  const Range range = type_range(c.output().dtype);
  if (c.input(0).dtype == ir::DType::int16) {
    SK_TRY(c.need_int16(1));
    std::vector<int16_t> table(1 << 16);
    for (int32_t value = INT16_MIN; value <= INT16_MAX; ++value) {
      table[static_cast<uint16_t>(value)] = static_cast<int16_t>(std::clamp<int32_t>(f(value), range.min, range.max));
    }
    return make_kernel([table = std::move(table), count = elem_count(c.input(0)), in = c.input_index(0),
                        out = c.output_index()](Tensors t) {
      for (size_t i = 0; i < count; ++i) elements<int16_t>(t[out])[i] = table[load_element<uint16_t>(t[in], i)];
    });
  }
  SK_TRY(c.need_quantized(1));
  return look_up_kernel(c, byte_table_of(c, f));
}

// f of each element, for these types.
template <typename... Ts, typename F>
Result<KernelPtr> map_kernel(const Context& c, F f) {
  return with_one_of<Ts...>(c, c.input(0).dtype, [&]<typename T>(T) {
    return make_kernel([f, count = elem_count(c.input(0)), in = c.input_index(0), out = c.output_index()](Tensors t) {
      for (size_t i = 0; i < count; ++i) elements<T>(t[out])[i] = f(load_element<T>(t[in], i));
    });
  });
}

template <typename F>
Result<KernelPtr> float_kernel(const Context& c, F f) {
  return map_kernel<float>(c, f);
}

constexpr float kNoLimit = std::numeric_limits<float>::infinity();

bool is_float(const Context& c) { return c.input(0).dtype == ir::DType::float32; }

// TFLite's LUTPopulate: a function of reals, computed in float.
template <typename F>
Result<KernelPtr> real_function(const Context& c, F f) {
  if (is_float(c)) return float_kernel(c, f);
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  if (c.input(0).dtype == ir::DType::int16) {
    const auto table = Int16Table::of_float(in, out, f);
    return table_kernel(c, [&](int32_t value) { return table(static_cast<int16_t>(value)); });
  }
  const float inverse_scale = 1 / out.scale();
  return table_kernel(c, [&](int32_t value) {
    const float result = f(in.scale() * static_cast<float>(value - in.zero_point()));
    return round_to_int(result * inverse_scale) + out.zero_point();
  });
}

// Functions from int16 values to steps of 1 / 32768.
Result<KernelPtr> sigmoid_kernel(const Context& c, int16_t (*f)(int16_t, const SigmoidInput&)) {
  if (c.output().quant.scale() != 1.0F / 32768) return c.unsupported("output scale {}", c.output().quant.scale());
  const SigmoidInput input = sigmoid_input(c.input(0).quant.scale());
  return table_kernel(c, [&](int32_t value) { return f(static_cast<int16_t>(value), input); });
}

// The quotient is rounded to float first, as in TFLite: this decides how ties round.
QuantizedMultiplier scale_ratio(const Context& c) {
  return quantize_multiplier(c.input(0).quant.scale() / c.output().quant.scale());
}

Range quantized_limits(const Context& c, FloatRange limits) {
  const ir::Tensor& output = c.output();
  const Range range = type_range(output.dtype);
  const auto quantize = [&](float value) {
    return std::clamp(round_to_int(value / output.quant.scale()) + output.quant.zero_point(), range.min, range.max);
  };
  return {quantize(limits.min), limits.max == kNoLimit ? range.max : quantize(limits.max)};
}

Result<KernelPtr> clamp_kernel(const Context& c, FloatRange limits) {
  if (is_float(c)) {
    return float_kernel(c, [limits](float x) { return std::min(std::max(x, limits.min), limits.max); });
  }
  const Range range = quantized_limits(c, limits);
  const auto by = scale_ratio(c);
  return table_kernel(c, [&](int32_t value) {
    const int32_t scaled = multiply_by_quantized_multiplier(value - c.input(0).quant.zero_point(), by);
    return std::clamp(wrapping_add(scaled, c.output().quant.zero_point()), range.min, range.max);
  });
}

// -x, modulo the type's range.
template <typename T>
T negated(T x) {
  return static_cast<T>(0U - static_cast<std::make_unsigned_t<T>>(x));
}

// f of the raw integers: TFLite's NEG ignores the zero point.
template <typename F>
Result<KernelPtr> integer_kernel(const Context& c, F f) {
  return map_kernel<int8_t, int16_t, int32_t, int64_t>(c, f);
}

}  // namespace

Result<KernelPtr> prepare_relu(const Context& c) { return clamp_kernel(c, {0, kNoLimit}); }
Result<KernelPtr> prepare_relu6(const Context& c) { return clamp_kernel(c, {0, 6}); }
Result<KernelPtr> prepare_relu_n1_to_1(const Context& c) { return clamp_kernel(c, {-1, 1}); }
Result<KernelPtr> prepare_relu_0_to_1(const Context& c) { return clamp_kernel(c, {0, 1}); }

Result<KernelPtr> prepare_leaky_relu(const Context& c) {
  const float alpha = c.attrs<ir::LeakyReluAttrs>().alpha;
  if (is_float(c)) return float_kernel(c, [alpha](float x) { return x > 0 ? x : x * alpha; });
  const auto identity = scale_ratio(c);
  const double factor = c.input(0).quant.scale() * alpha / c.output().quant.scale();
  const auto slope = quantize_multiplier(std::abs(factor));  // a negative factor negates the rounded value
  return table_kernel(c, [&](int32_t value) {
    const int32_t centred = value - c.input(0).quant.zero_point();
    const int32_t scaled = multiply_by_quantized_multiplier(centred, centred >= 0 ? identity : slope);
    return wrapping_add(centred < 0 && factor < 0 ? negated(scaled) : scaled, c.output().quant.zero_point());
  });
}

Result<KernelPtr> prepare_abs(const Context& c) {
  if (is_float(c)) return float_kernel(c, [](float x) { return std::abs(x); });
  if (c.input(0).dtype == ir::DType::int32) {
    return integer_kernel(c, [](auto x) { return x < 0 ? negated(x) : x; });
  }
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  const auto by = scale_ratio(c);
  return table_kernel(c, [&](int32_t value) {
    const int32_t magnitude = std::abs(value - in.zero_point());
    const bool rescale = in.scale() != out.scale();
    return wrapping_add(rescale ? multiply_by_quantized_multiplier(magnitude, by) : magnitude, out.zero_point());
  });
}

Result<KernelPtr> prepare_neg(const Context& c) {
  if (!is_float(c)) return integer_kernel(c, [](auto x) { return negated(x); });
  return float_kernel(c, [](float x) { return -x; });
}

Result<KernelPtr> prepare_sqrt(const Context& c) {
  if (is_float(c)) return float_kernel(c, [](float x) { return std::sqrt(x); });
  // TFLite truncates. It refuses values below the zero point at run time; here they are 0.
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  return table_kernel(c, [&](int32_t value) {
    const float root = std::sqrt(in.scale() * static_cast<float>(std::max(value - in.zero_point(), 0)));
    return static_cast<int32_t>(std::min(root / out.scale(), 1e6F)) + out.zero_point();
  });
}

Result<KernelPtr> prepare_square(const Context& c) {
  return float_kernel(c, [](float x) { return x * x; });
}

Result<KernelPtr> prepare_sin(const Context& c) { return float_kernel(c, ::sinf); }
Result<KernelPtr> prepare_cos(const Context& c) { return float_kernel(c, ::cosf); }
Result<KernelPtr> prepare_floor(const Context& c) { return float_kernel(c, ::floorf); }
Result<KernelPtr> prepare_ceil(const Context& c) { return float_kernel(c, ::ceilf); }
Result<KernelPtr> prepare_round(const Context& c) { return float_kernel(c, ::nearbyintf); }

Result<KernelPtr> prepare_sign(const Context& c) {
  const auto sign = [](auto x) { return static_cast<decltype(x)>((x > 0) - (x < 0)); };
  if (ir::is_8bit(c.input(0).dtype) || c.input(0).dtype == ir::DType::int16) {
    return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  }
  return is_float(c) ? float_kernel(c, sign) : integer_kernel(c, sign);
}

Result<KernelPtr> prepare_log(const Context& c) {
  if (is_float(c)) return float_kernel(c, ::logf);
  const ir::Quant& out = c.output().quant;
  const float least = out.scale() * static_cast<float>(type_range(c.output().dtype).min - out.zero_point());
  return real_function(c, [least](float x) { return x <= 0 ? least : std::log(x); });
}

Result<KernelPtr> prepare_gelu(const Context& c) {
  if (c.attrs<ir::GeluAttrs>().approximate) {
    constexpr float kSqrt2OverPi = 0.7978845608F, kCubic = 0.044715F;
    return real_function(c,
                         [](float x) { return 0.5F * x * (1 + std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x))); });
  }
  constexpr float kMinusSqrtHalf = -0.70710678118F;
  return real_function(c, [](float x) { return 0.5F * x * std::erfc(x * kMinusSqrtHalf); });
}

Result<KernelPtr> prepare_rsqrt(const Context& c) {
  if (is_float(c)) return float_kernel(c, [](float x) { return 1.0F / std::sqrt(x); });
  // TFLite refuses values below the zero point at run time; here they are 0.
  if (c.input(0).dtype == ir::DType::int16) {
    const float most = c.output().quant.scale() * INT16_MAX;
    return real_function(c, [most](float x) { return x <= 0 ? most : 1.0F / std::sqrt(x); });
  }
  constexpr int kKeptBits = 20;
  const ir::Quant &in = c.input(0).quant, &out = c.output().quant;
  QuantizedMultiplier to_output =
      quantize_multiplier(static_cast<double>(1.0F / (std::sqrt(in.scale()) * out.scale())));
  to_output.shift -= kKeptBits;
  const Range range = type_range(c.output().dtype);
  if (to_output.shift < -31 || to_output.shift > 30) return c.unsupported("scale {}", out.scale());
  return table_kernel(c, [&](int32_t value) {
    if (value == in.zero_point()) return range.max;
    QuantizedMultiplier by = inverse_sqrt(std::max(value - in.zero_point(), 0));
    by.shift += kKeptBits;
    const int32_t inverse = multiply_by_quantized_multiplier(1, by);
    return wrapping_add(multiply_by_quantized_multiplier(inverse, to_output), out.zero_point());
  });
}

// Made by a pass: operand 1 is the result of each byte.
Result<KernelPtr> prepare_byte_table(const Context& c) {
  ByteTable table{};
  std::ranges::copy(c.input(1).data, table.begin());
  return look_up_kernel(c, table);
}

Result<KernelPtr> prepare_logistic(const Context& c) {
  if (c.input(0).dtype == ir::DType::int16) return sigmoid_kernel(c, int16_logistic);
  return real_function(c, [](float x) { return 1.0F / (1.0F + std::exp(-x)); });
}

Result<KernelPtr> prepare_tanh(const Context& c) {
  if (c.input(0).dtype == ir::DType::int16) return sigmoid_kernel(c, int16_tanh);
  return real_function(c, [](float x) { return std::tanh(x); });
}

Result<KernelPtr> prepare_elu(const Context& c) {
  return real_function(c, [](float x) { return x < 0 ? std::expm1(x) : x; });
}

Result<KernelPtr> prepare_exp(const Context& c) { return real_function(c, ::expf); }

Result<KernelPtr> prepare_hard_swish(const Context& c) {
  if (is_float(c)) {
    return float_kernel(c, [](float x) { return x * std::min(6.0F, std::max(0.0F, x + 3)) / 6; });
  }
  if (c.input(0).dtype == ir::DType::int16) return c.unsupported("type int16");
  const HardSwish params = hard_swish_params(c.input(0).quant, c.output().quant);
  if (params.output_exponent > 0) return c.unsupported("output scale is too small for the input scale");
  return table_kernel(c, [&](int32_t value) { return hard_swish(params, value); });
}

}  // namespace skillet::ref
