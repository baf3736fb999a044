// QUANTIZE (from float, or from one quantization to another), DEQUANTIZE and CAST.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ref/types.h"

namespace skillet::ref {
namespace {

Result<KernelPtr> quantize_float(const Context& c) {
  const float scale = c.output().quant.scale();
  const int32_t zero_point = c.output().quant.zero_point();
  const Range range = type_range(c.output().dtype);
  return make_kernel([=, count = elem_count(c.input(0)), in = c.input_index(0), out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < count; ++i) {
      const float scaled = std::round(load_element<float>(t[in], i) / scale);
      // What is outside of int32 or no number at all saturates.
      const auto value = static_cast<int32_t>(std::clamp(std::isnan(scaled) ? -1e6F : scaled, -1e6F, 1e6F));
      t[out][i] = static_cast<uint8_t>(std::clamp(value + zero_point, range.min, range.max));
    }
  });
}

Result<KernelPtr> requantize(const Context& c) {
  SK_TRY(c.need_quantized(c.input(0)));
  const ir::Quant &from = c.input(0).quant, &to = c.output().quant;
  const auto by = quantize_multiplier(static_cast<double>(from.scale()) / static_cast<double>(to.scale()));
  const Range range = type_range(c.output().dtype);
  std::array<uint8_t, 256> table{};
  for (int raw = 0; raw < 256; ++raw) {
    const int32_t value = c.input(0).dtype == ir::DType::int8 ? static_cast<int8_t>(raw) : raw;
    const int32_t scaled = multiply_by_quantized_multiplier(value - from.zero_point(), by);
    table[static_cast<size_t>(raw)] =
        static_cast<uint8_t>(std::clamp(wrapping_add(scaled, to.zero_point()), range.min, range.max));
  }
  return make_kernel([table, in = c.input_index(0), out = c.output_index()](Tensors t) {
    std::transform(t[in].begin(), t[in].end(), t[out].begin(), [&](uint8_t raw) { return table[raw]; });
  });
}

// As static_cast, but defined for every float: saturates, and NaN is 0.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    if (std::isnan(value)) return 0;
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

}  // namespace

Result<KernelPtr> prepare_quantize(const Context& c) {
  SK_TRY(c.need_quantized(c.output()));
  return c.input(0).dtype == ir::DType::float32 ? quantize_float(c) : requantize(c);
}

Result<KernelPtr> prepare_dequantize(const Context& c) {
  SK_TRY(c.need_quantized(c.input(0)));
  if (c.output().dtype != ir::DType::float32) return c.unsupported("output type {}", ir::dtype_name(c.output().dtype));
  const ir::Quant& quant = c.input(0).quant;
  std::array<float, 256> table{};
  for (int raw = 0; raw < 256; ++raw) {
    const int32_t value = c.input(0).dtype == ir::DType::int8 ? static_cast<int8_t>(raw) : raw;
    table[static_cast<size_t>(raw)] = quant.scale() * static_cast<float>(value - quant.zero_point());
  }
  return make_kernel([table, in = c.input_index(0), out = c.output_index()](Tensors t) {
    std::transform(t[in].begin(), t[in].end(), elements<float>(t[out]), [&](uint8_t raw) { return table[raw]; });
  });
}

Result<KernelPtr> prepare_cast(const Context& c) {
  return with_type(c, c.input(0).dtype, [&](auto from_type) {
    return with_type(c, c.output().dtype, [&](auto to_type) -> Result<KernelPtr> {
      using From = decltype(from_type);
      using To = decltype(to_type);
      return make_kernel([count = elem_count(c.input(0)), in = c.input_index(0), out = c.output_index()](Tensors t) {
        for (size_t i = 0; i < count; ++i) {
          if constexpr (std::is_same_v<From, bool>) {
            elements<To>(t[out])[i] = static_cast<To>(t[in][i] != 0);
          } else {
            elements<To>(t[out])[i] = convert<To>(load_element<From>(t[in], i));
          }
        }
      });
    });
  });
}

}  // namespace skillet::ref
