// QUANTIZE (from float, or from one quantization to another), DEQUANTIZE and CAST.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ref/types.h"

namespace skillet::ref {
namespace {

// The nearest integer, halves away from zero, without a call: for what fits int32.
int32_t rounded(float value) {
  const auto whole = static_cast<int32_t>(value);
  const float rest = value - static_cast<float>(whole);
  return whole + (rest >= 0.5F ? 1 : 0) - (rest <= -0.5F ? 1 : 0);
}

Result<KernelPtr> quantize_float(const Context& c) {
  const float scale = c.output().quant.scale();
  const int32_t zero_point = c.output().quant.zero_point();
  const Range range = type_range(c.output().dtype);
  return make_kernel([=, count = elem_count(c.input(0)), in = c.input_index(0), out = c.output_index()](Tensors t) {
    const uint8_t* from = t[in].data();
    uint8_t* to = t[out].data();
    for (size_t i = 0; i < count; ++i) {
      // What is outside of int32 or no number at all saturates.
      const float scaled = load_le<float>(from + i * sizeof(float)) / scale;
      const float limited = std::min(scaled > -1e6F ? scaled : -1e6F, 1e6F);
      to[i] = static_cast<uint8_t>(std::clamp(rounded(limited) + zero_point, range.min, range.max));
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

// CAST goes through blocks of a type that holds all values of the one that it comes from, so that there is not a loop
// for each pair of types.
constexpr size_t kBlock = 256;
template <typename Wide>
using LoadBlock = void (*)(std::span<const uint8_t> bytes, size_t first, std::span<Wide> block);

template <typename Wide, typename From>
void load_block(std::span<const uint8_t> bytes, size_t first, std::span<Wide> block) {
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<Wide>(load_value<From>(bytes, first + i));
}

template <typename Wide>
Result<KernelPtr> cast_from(const Context& c, LoadBlock<Wide> load) {
  return with_type(c, c.output().dtype, [&](auto to_type) -> Result<KernelPtr> {
    using To = decltype(to_type);
    return make_kernel(
        [load, count = elem_count(c.input(0)), in = c.input_index(0), out = c.output_index()](Tensors t) {
          std::array<Wide, kBlock> block;
          for (size_t first = 0; first < count; first += kBlock) {
            const size_t elems = std::min(kBlock, count - first);
            load(t[in], first, std::span(block).first(elems));
            std::transform(block.begin(), block.begin() + elems, elements<To>(t[out]) + first, convert<To, Wide>);
          }
        });
  });
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
    using From = decltype(from_type);
    using Wide = std::conditional_t<std::is_floating_point_v<From>, From, int64_t>;
    return cast_from<Wide>(c, load_block<Wide, From>);
  });
}

}  // namespace skillet::ref
