// Elementwise ops of two operands with broadcast: ADD, SUB, MUL, DIV, FLOOR_DIV, MAXIMUM, MINIMUM.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "graph/ref/elementwise.h"
#include "graph/ref/softmax.h"
#include "simd/vector_math.h"

namespace skillet::ref {
namespace {

using vector_math::Combination;
using vector_math::Combine;

KernelPtr quantized_kernel(const Context& c, const Combination& combination) {
  const Broadcast broadcast(c.input(0).shape, c.input(1).shape);
  return with_8bit(c.output().dtype, [&]<typename T>(T) {
    return make_kernel([plan = combination, broadcast, a = c.input_index(0), b = c.input_index(1),
                        out = c.output_index()](Tensors t) mutable {
      broadcast.for_each_row([&](size_t a_at, size_t a_step, size_t b_at, size_t b_step, size_t out_at) {
        plan.a.step = a_step;
        plan.b.step = b_step;
        vector_math::combine(elements<const T>(t[a]) + a_at, elements<const T>(t[b]) + b_at, broadcast.row_elems(),
                             plan, elements<T>(t[out]) + out_at);
      });
    });
  });
}

// Applies the output's quantization and a fused activation.
Result<Combination> combination(const Context& c, Combine how, ir::Activation activation, QuantizedMultiplier by) {
  SK_TRY_ASSIGN(const Range range, activation_range(c, activation, c.output()));
  return Combination{.how = how,
                     .a = {.zero_point = c.input(0).quant.zero_point()},
                     .b = {.zero_point = c.input(1).quant.zero_point()},
                     .output = by,
                     .zero_point = c.output().quant.zero_point(),
                     .min = range.min,
                     .max = range.max};
}

// Both operands are scaled to twice the larger scale with 20 more bits, then added.
Result<KernelPtr> quantized_sum(const Context& c, ir::Activation activation, bool subtract) {
  SK_TRY(c.need_quantized(2));
  constexpr int kLeftShift = 20;
  const float a_scale = c.input(0).quant.scale(), b_scale = c.input(1).quant.scale();
  const double twice_max = 2 * std::max(a_scale, b_scale);
  const auto by = quantize_multiplier(twice_max / ((1 << kLeftShift) * c.output().quant.scale()));
  SK_TRY_ASSIGN(Combination sum, combination(c, subtract ? Combine::difference : Combine::sum, activation, by));
  const auto scale = [&](vector_math::Operand& operand, float input_scale) {
    operand.left_shift = kLeftShift;
    operand.by = quantize_multiplier(input_scale / twice_max);
    // A factor of 1/2 (the larger scale) is a shift.
    if (operand.by == QuantizedMultiplier{1 << 30, 0}) operand = {operand.zero_point, kLeftShift - 1};
  };
  scale(sum.a, a_scale);
  scale(sum.b, b_scale);
  return quantized_kernel(c, sum);
}

Result<KernelPtr> quantized_product(const Context& c, ir::Activation activation) {
  SK_TRY(c.need_quantized(2));
  // TFLite computes this multiplier in float.
  const auto by = quantize_multiplier(c.input(0).quant.scale() * c.input(1).quant.scale() / c.output().quant.scale());
  SK_TRY_ASSIGN(const Combination product, combination(c, Combine::product, activation, by));
  return quantized_kernel(c, product);
}

// Both operands are scaled to twice the larger scale with 7 more bits, then subtracted and squared.
Result<KernelPtr> quantized_squared_difference(const Context& c) {
  SK_TRY(c.need_quantized(2));
  constexpr int kLeftShift = 7;
  const double a_scale = c.input(0).quant.scale(), b_scale = c.input(1).quant.scale();
  const double twice_max = 2 * std::max(a_scale, b_scale);
  const double unit = (1 << (2 * kLeftShift)) * static_cast<double>(c.output().quant.scale());
  const auto by = quantize_multiplier(twice_max * twice_max / unit);
  SK_TRY_ASSIGN(Combination square, combination(c, Combine::squared_difference, ir::Activation::none, by));
  square.a.left_shift = square.b.left_shift = kLeftShift;
  square.a.by = quantize_multiplier(a_scale / twice_max);
  square.b.by = quantize_multiplier(b_scale / twice_max);
  return quantized_kernel(c, square);
}

// A divisor of zero gives zero instead of a trap; the lowest value over -1 wraps around.
template <typename T>
T quotient(T x, T y) {
  if (y == 0) return 0;
  return y == -1 ? static_cast<T>(0U - static_cast<std::make_unsigned_t<T>>(x)) : static_cast<T>(x / y);
}

// f of two integers, modulo 2^32 or 2^64.
template <typename T, typename F>
KernelPtr wrapping(const Context& c, F f) {
  using U = std::make_unsigned_t<T>;
  return elementwise<T>(c, [f](T x, T y) { return static_cast<T>(f(static_cast<U>(x), static_cast<U>(y))); });
}

// float32, int32 or int64 with a fused activation; integers wrap around and have no activation.
template <typename F>
Result<KernelPtr> arithmetic(const Context& c, ir::Activation activation, F f) {
  const ir::DType dtype = c.input(0).dtype;
  if (dtype == ir::DType::float32) {
    SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, activation));
    return elementwise<float>(
        c, [f, range](float x, float y) { return std::min(std::max(f(x, y), range.min), range.max); });
  }
  if (dtype == ir::DType::int32 && activation == ir::Activation::none) return wrapping<int32_t>(c, f);
  if (dtype == ir::DType::int64 && activation == ir::Activation::none) return wrapping<int64_t>(c, f);
  if (dtype == ir::DType::uint32 && activation == ir::Activation::none) return wrapping<uint32_t>(c, f);
  return c.unsupported("type {} with activation {}", ir::dtype_name(dtype), ir::activation_name(activation));
}

// MAXIMUM and MINIMUM compare raw values: all tensors have the same quantization.
template <typename F>
Result<KernelPtr> pick(const Context& c, F f) {
  return elementwise_of<float, int32_t, int64_t, int16_t, int8_t, uint8_t>(c, f);
}

}  // namespace

Result<KernelPtr> prepare_add(const Context& c) {
  const ir::Activation activation = c.attrs<ir::ActivationAttrs>().activation;
  if (ir::is_8bit(c.input(0).dtype)) return quantized_sum(c, activation, false);
  if (c.input(0).dtype == ir::DType::int16) return prepare_int16_sum(c, false);
  return arithmetic(c, activation, [](auto x, auto y) { return x + y; });
}

Result<KernelPtr> prepare_sub(const Context& c) {
  const ir::Activation activation = c.attrs<ir::ActivationAttrs>().activation;
  if (ir::is_8bit(c.input(0).dtype)) return quantized_sum(c, activation, true);
  if (c.input(0).dtype == ir::DType::int16) return prepare_int16_sum(c, true);
  return arithmetic(c, activation, [](auto x, auto y) { return x - y; });
}

Result<KernelPtr> prepare_mul(const Context& c) {
  const ir::Activation activation = c.attrs<ir::ActivationAttrs>().activation;
  if (ir::is_8bit(c.input(0).dtype)) return quantized_product(c, activation);
  if (c.input(0).dtype == ir::DType::int16) return prepare_int16_mul(c);
  return arithmetic(c, activation, [](auto x, auto y) { return x * y; });
}

namespace {

// x / y in the output's scale: multiplies the reciprocal of y in Q31 by x, shifted left as far as it fits. A divisor of
// zero gives the output's zero point.
struct QuantizedQuotient {
  int32_t x_zero = 0, y_zero = 0, output_zero = 0;
  QuantizedMultiplier by;
  Range range;

  int32_t operator()(int32_t x, int32_t y) const {
    x -= x_zero;
    y -= y_zero;
    if (y == 0) return std::clamp(output_zero, range.min, range.max);
    if (y < 0) {
      x = -x;
      y = -y;
    }
    const Reciprocal inverse = reciprocal(y, 31);
    const auto magnitude = static_cast<uint32_t>(x < 0 ? ~x : x);
    const int headroom = std::countl_zero(magnitude) - 1;
    const int32_t quotient = saturating_rounding_doubling_high_mul(wrapping_shift_left(x, headroom), inverse.value);
    const int shift = by.shift - inverse.num_bits_over_unit - headroom;
    const int32_t scaled = saturating_rounding_doubling_high_mul(quotient, by.multiplier);
    // For quotients near zero TFLite shifts right by more than 31 bits, which is undefined. Shifts to the left occur
    // for quotients far outside the range.
    const int64_t value = shift > 0 ? int64_t{scaled} * (int64_t{1} << std::min(shift, 31))
                                    : rounding_divide_by_pot(scaled, std::min(-shift, 31));
    return static_cast<int32_t>(std::clamp<int64_t>(value + output_zero, range.min, range.max));
  }
};

Result<KernelPtr> quantized_quotient(const Context& c) {
  SK_TRY(c.input(0).dtype == ir::DType::int16 ? c.need_int16(2) : c.need_quantized(2));
  const ir::Quant &x = c.input(0).quant, &y = c.input(1).quant, &out = c.output().quant;
  QuantizedQuotient quotient{.x_zero = x.zero_point(), .y_zero = y.zero_point(), .output_zero = out.zero_point()};
  // The product is rounded to float first, as in TFLite.
  quotient.by = quantize_multiplier(static_cast<double>(x.scale() / (y.scale() * out.scale())));
  SK_TRY_ASSIGN(quotient.range, activation_range(c, c.attrs<ir::ActivationAttrs>().activation, c.output()));
  return with_quantized(c.input(0).dtype, [&]<typename T>(T) {
    return elementwise<T>(c, [quotient](T a, T b) { return static_cast<T>(quotient(a, b)); });
  });
}

// x^y modulo 2^32. A negative power is truncated to zero, except for x = 1 and -1.
int32_t integer_power(int32_t x, int32_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  uint32_t power = 1;
  for (auto base = static_cast<uint32_t>(x); y > 0; y /= 2, base *= base) {
    if (y % 2 != 0) power *= base;
  }
  return static_cast<int32_t>(power);
}

}  // namespace

Result<KernelPtr> prepare_div(const Context& c) {
  if (!c.input(0).quant.empty() && (ir::is_8bit(c.input(0).dtype) || c.input(0).dtype == ir::DType::int16)) {
    return quantized_quotient(c);
  }
  if (c.input(0).dtype == ir::DType::int32 && c.attrs<ir::ActivationAttrs>().activation == ir::Activation::none) {
    return elementwise<int32_t>(c, [](int32_t x, int32_t y) { return quotient(x, y); });
  }
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return arithmetic(c, c.attrs<ir::ActivationAttrs>().activation, [](auto x, auto y) { return x / y; });
}

Result<KernelPtr> prepare_squared_difference(const Context& c) {
  if (ir::is_8bit(c.input(0).dtype)) return quantized_squared_difference(c);
  if (c.input(0).dtype == ir::DType::float32)  // may be infinite
    return elementwise<float>(c, [](float x, float y) { return (x - y) * (x - y); });
  return arithmetic(c, ir::Activation::none, [](auto x, auto y) { return (x - y) * (x - y); });
}

Result<KernelPtr> prepare_pow(const Context& c) {
  if (c.input(0).dtype == ir::DType::int32) return elementwise<int32_t>(c, integer_power);
  return elementwise_of<float>(c, [](float x, float y) { return std::pow(x, y); });
}

Result<KernelPtr> prepare_floor_mod(const Context& c) {
  const auto modulo = [](auto x, auto y) -> decltype(x) {
    if (y == 0 || y == -1) return 0;  // a divisor of zero gives zero rather than a trap
    const auto rest = static_cast<decltype(x)>(x % y);
    return static_cast<decltype(x)>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  };
  if (c.input(0).dtype != ir::DType::float32) return elementwise_of<int8_t, int16_t, int32_t, int64_t>(c, modulo);
  return elementwise<float>(c, [](float x, float y) {
    const float rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  });
}

namespace {

// TensorFlow Lite adds tensors in pairs, with the limits of an ADD without activation.
float finite(float x) {
  return std::min(std::max(x, std::numeric_limits<float>::lowest()), std::numeric_limits<float>::max());
}
uint32_t finite(uint32_t x) { return x; }

}  // namespace

Result<KernelPtr> prepare_add_n(const Context& c) {
  const auto sum = [&]<typename T>(T) {
    using Sum = std::conditional_t<std::is_integral_v<T>, uint32_t, T>;
    return make_kernel([ids = c.op().inputs, count = elem_count(c.output()), out = c.output_index()](Tensors t) {
      const auto value = [&](size_t operand, size_t i) {
        return static_cast<Sum>(load_element<T>(t[static_cast<size_t>(ids[operand])], i));
      };
      for (size_t i = 0; i < count; ++i) {
        Sum total = value(0, i);
        for (size_t operand = 1; operand < ids.size(); ++operand) total = finite(total + value(operand, i));
        elements<T>(t[out])[i] = static_cast<T>(total);
      }
    });
  };
  return with_one_of<float, int32_t>(c, c.output().dtype, sum);
}

// Negative values are multiplied by their alpha.
Result<KernelPtr> prepare_prelu(const Context& c) {
  if (c.input(0).dtype == ir::DType::float32) {
    return elementwise<float>(c, [](float x, float alpha) { return x >= 0 ? x : x * alpha; });
  }
  if (c.input(0).dtype == ir::DType::int16) return prepare_int16_prelu(c);
  SK_TRY(c.need_quantized(2));
  const ir::Quant &in = c.input(0).quant, &alpha = c.input(1).quant, &out = c.output().quant;
  const auto identity = quantize_multiplier(in.scale() / out.scale());
  const auto slope = quantize_multiplier(in.scale() * alpha.scale() / out.scale());
  const auto f = [identity, slope, zero = in.zero_point(), alpha_zero = alpha.zero_point(), out_zero = out.zero_point(),
                  range = type_range(c.output().dtype)](auto x, auto a) {
    const int32_t value = x - zero;
    const int32_t scaled = value >= 0 ? multiply_by_quantized_multiplier(value, identity)
                                      : multiply_by_quantized_multiplier(value * (a - alpha_zero), slope);
    return static_cast<decltype(x)>(std::clamp(wrapping_add(scaled, out_zero), range.min, range.max));
  };
  return with_8bit(c.input(0).dtype, [&](auto type) { return elementwise<decltype(type)>(c, f); });
}

Result<KernelPtr> prepare_floor_div(const Context& c) {
  if (c.input(0).dtype == ir::DType::float32) {
    return elementwise<float>(c,
                              [](float x, float y) { return static_cast<float>(std::floor(double{x} / double{y})); });
  }
  const auto downwards = [](auto x, auto y) {
    using T = decltype(x);
    return static_cast<T>(quotient(x, y) - (y != 0 && y != -1 && x % y != 0 && (x < 0) != (y < 0) ? 1 : 0));
  };
  return elementwise_of<int8_t, int16_t, int32_t>(c, downwards);
}

// For NaN and a number the result is the second operand.
Result<KernelPtr> prepare_maximum(const Context& c) {
  return pick(c, [](auto x, auto y) { return x > y ? x : y; });
}

Result<KernelPtr> prepare_minimum(const Context& c) {
  return pick(c, [](auto x, auto y) { return x < y ? x : y; });
}

}  // namespace skillet::ref
