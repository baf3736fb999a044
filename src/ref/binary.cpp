// Elementwise ops of two operands with broadcast: ADD, SUB, MUL, DIV, FLOOR_DIV, MAXIMUM, MINIMUM.
// 8-bit ADD, SUB and MUL make 32-bit sums or products and share the requantization of the convolutions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/gemm.h"
#include "ref/broadcast.h"
#include "ref/kernel.h"

namespace skillet::ref {
namespace {

constexpr size_t kChunk = 256;

// What a pair of 8-bit values becomes before requantization.
enum class Combine { sum, product, squared_difference };

struct QuantizedBinary {
  Combine combine = Combine::sum;
  std::array<int32_t, 256> a{}, b{};  // by raw byte: scaled (ADD, SUB) or less the zero point (MUL)
  std::array<int32_t, kChunk> multiplier{}, shift{};
  int32_t zero_point = 0;
  Range range;

  void set_output(QuantizedMultiplier by) {
    multiplier.fill(by.multiplier);
    shift.fill(by.shift);
  }
};

// table[raw byte] = f(value - zero point)
template <typename F>
std::array<int32_t, 256> byte_table(const ir::Tensor& tensor, F f) {
  std::array<int32_t, 256> table{};
  for (int raw = 0; raw < 256; ++raw) {
    const int value = tensor.dtype == ir::DType::int8 ? static_cast<int8_t>(raw) : raw;
    table[static_cast<size_t>(raw)] = f(value - tensor.quant.zero_point());
  }
  return table;
}

int32_t combined(Combine combine, int32_t x, int32_t y) {
  if (combine == Combine::sum) return x + y;
  return combine == Combine::product ? x * y : (x - y) * (x - y);
}

template <typename T>
void combine_row(const QuantizedBinary& plan, const uint8_t* a, size_t a_step, const uint8_t* b, size_t b_step,
                 size_t count, T* out) {
  const gemm::Requantize how{.multiplier = plan.multiplier.data(),
                             .shift = plan.shift.data(),
                             .output_zero_point = plan.zero_point,
                             .clamp_min = plan.range.min,
                             .clamp_max = plan.range.max};
  std::array<int32_t, kChunk> sums;
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t n = std::min(kChunk, count - first);
    for (size_t i = 0; i < n; ++i) {
      const int32_t x = plan.a[a[(first + i) * a_step]], y = plan.b[b[(first + i) * b_step]];
      sums[i] = combined(plan.combine, x, y);
    }
    gemm::requantize(sums.data(), n, how, out + first);
  }
}

KernelPtr quantized_kernel(const Context& c, const QuantizedBinary& plan) {
  const Broadcast broadcast(c.input(0).shape, c.input(1).shape);
  return with_8bit(c.output().dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel(
        [plan, broadcast, a = c.input_index(0), b = c.input_index(1), out = c.output_index()](Tensors t) {
          broadcast.for_each_row([&](size_t a_at, size_t a_step, size_t b_at, size_t b_step, size_t out_at) {
            combine_row(plan, t[a].data() + a_at, a_step, t[b].data() + b_at, b_step, broadcast.row_elems(),
                        elements<T>(t[out]) + out_at);
          });
        });
  });
}

Result<void> check_quantized(const Context& c) {
  SK_TRY(c.need_quantized(c.input(0)));
  SK_TRY(c.need_quantized(c.input(1)));
  return c.need_quantized(c.output());
}

// Both operands are brought to twice the larger scale with 20 more bits, then added.
Result<KernelPtr> quantized_sum(const Context& c, ir::Activation activation, bool subtract) {
  SK_TRY(check_quantized(c));
  constexpr int kLeftShift = 20;
  const float a_scale = c.input(0).quant.scale(), b_scale = c.input(1).quant.scale();
  const double twice_max = 2 * std::max(a_scale, b_scale);
  const auto scaled = [&](const ir::Tensor& tensor, bool negate) {
    const auto by = quantize_multiplier(tensor.quant.scale() / twice_max);
    return byte_table(tensor, [&](int32_t value) {
      const int32_t result = multiply_by_quantized_multiplier(value * (1 << kLeftShift), by);
      return negate ? -result : result;
    });
  };
  QuantizedBinary plan;
  plan.a = scaled(c.input(0), false);
  plan.b = scaled(c.input(1), subtract);
  plan.set_output(quantize_multiplier(twice_max / ((1 << kLeftShift) * c.output().quant.scale())));
  plan.zero_point = c.output().quant.zero_point();
  SK_TRY_ASSIGN(plan.range, activation_range(c, activation, c.output()));
  return quantized_kernel(c, plan);
}

Result<KernelPtr> quantized_product(const Context& c, ir::Activation activation) {
  SK_TRY(check_quantized(c));
  const auto same = [](int32_t value) { return value; };
  QuantizedBinary plan;
  plan.combine = Combine::product;
  plan.a = byte_table(c.input(0), same);
  plan.b = byte_table(c.input(1), same);
  // TFLite computes this one in float.
  plan.set_output(quantize_multiplier(c.input(0).quant.scale() * c.input(1).quant.scale() / c.output().quant.scale()));
  plan.zero_point = c.output().quant.zero_point();
  SK_TRY_ASSIGN(plan.range, activation_range(c, activation, c.output()));
  return quantized_kernel(c, plan);
}

// Both operands are brought to twice the larger scale with 7 more bits, then subtracted and squared.
Result<KernelPtr> quantized_squared_difference(const Context& c) {
  SK_TRY(check_quantized(c));
  constexpr int kLeftShift = 7;
  const double a_scale = c.input(0).quant.scale(), b_scale = c.input(1).quant.scale();
  const double twice_max = 2 * std::max(a_scale, b_scale);
  const auto scaled = [&](const ir::Tensor& tensor) {
    const auto by = quantize_multiplier(static_cast<double>(tensor.quant.scale()) / twice_max);
    return byte_table(tensor,
                      [&](int32_t value) { return multiply_by_quantized_multiplier(value * (1 << kLeftShift), by); });
  };
  QuantizedBinary plan;
  plan.combine = Combine::squared_difference;
  plan.a = scaled(c.input(0));
  plan.b = scaled(c.input(1));
  const double unit = (1 << (2 * kLeftShift)) * static_cast<double>(c.output().quant.scale());
  plan.set_output(quantize_multiplier(twice_max * twice_max / unit));
  plan.zero_point = c.output().quant.zero_point();
  plan.range = type_range(c.output().dtype);
  return quantized_kernel(c, plan);
}

// f(a, b) for every pair; operands are loaded bytewise because constants may lie at any address.
template <typename T, typename F>
KernelPtr elementwise(const Context& c, F f) {
  return make_kernel([f, broadcast = Broadcast(c.input(0).shape, c.input(1).shape), a = c.input_index(0),
                      b = c.input_index(1), out = c.output_index()](Tensors t) {
    broadcast.for_each_row([&](size_t a_at, size_t a_step, size_t b_at, size_t b_step, size_t out_at) {
      T* to = elements<T>(t[out]) + out_at;
      for (size_t i = 0; i < broadcast.row_elems(); ++i) {
        to[i] = f(load_element<T>(t[a], a_at + i * a_step), load_element<T>(t[b], b_at + i * b_step));
      }
    });
  });
}

// float32 or int32 with a fused activation; integers wrap around. `f` is called with two float or two uint32_t.
template <typename F>
Result<KernelPtr> arithmetic(const Context& c, ir::Activation activation, F f) {
  const ir::DType dtype = c.input(0).dtype;
  if (dtype == ir::DType::float32) {
    SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, activation));
    return elementwise<float>(
        c, [f, range](float x, float y) { return std::min(std::max(f(x, y), range.min), range.max); });
  }
  if (dtype == ir::DType::int32 && activation == ir::Activation::none) {
    return elementwise<int32_t>(c, [f](int32_t x, int32_t y) {
      return static_cast<int32_t>(f(static_cast<uint32_t>(x), static_cast<uint32_t>(y)));
    });
  }
  return c.unsupported("type {} with activation {}", ir::dtype_name(dtype), ir::activation_name(activation));
}

// MAXIMUM and MINIMUM compare raw values: all tensors have one quantization.
template <typename F>
Result<KernelPtr> pick(const Context& c, F f) {
  switch (c.input(0).dtype) {
    case ir::DType::float32: return elementwise<float>(c, f);
    case ir::DType::int32: return elementwise<int32_t>(c, f);
    case ir::DType::int64: return elementwise<int64_t>(c, f);
    case ir::DType::int8: return elementwise<int8_t>(c, f);
    case ir::DType::uint8: return elementwise<uint8_t>(c, f);
    default: return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  }
}

}  // namespace

Result<KernelPtr> prepare_add(const Context& c) {
  const ir::Activation activation = c.attrs<ir::ActivationAttrs>().activation;
  if (ir::is_8bit(c.input(0).dtype)) return quantized_sum(c, activation, false);
  return arithmetic(c, activation, [](auto x, auto y) { return x + y; });
}

Result<KernelPtr> prepare_sub(const Context& c) {
  const ir::Activation activation = c.attrs<ir::ActivationAttrs>().activation;
  if (ir::is_8bit(c.input(0).dtype)) return quantized_sum(c, activation, true);
  return arithmetic(c, activation, [](auto x, auto y) { return x - y; });
}

Result<KernelPtr> prepare_mul(const Context& c) {
  const ir::Activation activation = c.attrs<ir::ActivationAttrs>().activation;
  if (ir::is_8bit(c.input(0).dtype)) return quantized_product(c, activation);
  return arithmetic(c, activation, [](auto x, auto y) { return x * y; });
}

Result<KernelPtr> prepare_div(const Context& c) {
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return arithmetic(c, c.attrs<ir::ActivationAttrs>().activation, [](auto x, auto y) { return x / y; });
}

Result<KernelPtr> prepare_squared_difference(const Context& c) {
  if (ir::is_8bit(c.input(0).dtype)) return quantized_squared_difference(c);
  return arithmetic(c, ir::Activation::none, [](auto x, auto y) { return (x - y) * (x - y); });
}

Result<KernelPtr> prepare_pow(const Context& c) {
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return elementwise<float>(c, [](float x, float y) { return std::pow(x, y); });
}

Result<KernelPtr> prepare_floor_mod(const Context& c) {
  const auto modulo = [](auto x, auto y) -> decltype(x) {
    if (y == 0 || y == -1) return 0;  // a divisor of zero gives zero rather than a trap
    const auto rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  };
  if (c.input(0).dtype == ir::DType::int32) return elementwise<int32_t>(c, modulo);
  if (c.input(0).dtype == ir::DType::int64) return elementwise<int64_t>(c, modulo);
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return elementwise<float>(c, [](float x, float y) {
    const float rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  });
}

Result<KernelPtr> prepare_add_n(const Context& c) {
  const auto sum = [&](auto type) {
    using T = decltype(type);
    using Sum = std::conditional_t<std::is_integral_v<T>, uint32_t, T>;
    return make_kernel([ids = c.op().inputs, count = elem_count(c.output()), out = c.output_index()](Tensors t) {
      for (size_t i = 0; i < count; ++i) {
        Sum total = 0;
        for (const ir::TensorId id : ids) total += static_cast<Sum>(load_element<T>(t[static_cast<size_t>(id)], i));
        elements<T>(t[out])[i] = static_cast<T>(total);
      }
    });
  };
  if (c.output().dtype == ir::DType::float32) return sum(float{});
  if (c.output().dtype == ir::DType::int32) return sum(int32_t{});
  return c.unsupported("type {}", ir::dtype_name(c.output().dtype));
}

// Negative values are multiplied by their alpha.
Result<KernelPtr> prepare_prelu(const Context& c) {
  if (c.input(0).dtype == ir::DType::float32) {
    return elementwise<float>(c, [](float x, float alpha) { return x >= 0 ? x : x * alpha; });
  }
  SK_TRY(check_quantized(c));
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
    return elementwise<float>(c, [](float x, float y) { return std::floor(x / y); });
  }
  if (c.input(0).dtype != ir::DType::int32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  // A divisor of zero gives zero rather than a trap; int32's lowest value over -1 wraps around.
  return elementwise<int32_t>(c, [](int32_t x, int32_t y) {
    if (y == 0) return 0;
    if (y == -1) return static_cast<int32_t>(0U - static_cast<uint32_t>(x));
    return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
  });
}

Result<KernelPtr> prepare_maximum(const Context& c) {
  return pick(c, [](auto x, auto y) { return std::max(x, y); });
}

Result<KernelPtr> prepare_minimum(const Context& c) {
  return pick(c, [](auto x, auto y) { return std::min(x, y); });
}

}  // namespace skillet::ref
