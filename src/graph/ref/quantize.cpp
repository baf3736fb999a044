// QUANTIZE (from float, or from one quantization to another), DEQUANTIZE and CAST.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "graph/ref/types.h"
#include "simd/vector_math.h"

namespace skillet::ref {
namespace {

// Calls `body` for any integer type that has quantization.
template <typename Body>
Result<KernelPtr> with_integer(const Context& c, const ir::Tensor& tensor, Body body) {
  if (tensor.quant.empty() || tensor.quant.per_channel()) {
    return c.unsupported("tensor '{}' has {} scales, expected one", tensor.name, tensor.quant.scales.size());
  }
  return with_one_of<int8_t, uint8_t, int16_t, int32_t>(c, tensor.dtype, body);
}

Result<KernelPtr> quantize_float(const Context& c) {
  const float scale = c.output().quant.scale();
  const int32_t zero_point = c.output().quant.zero_point();
  return with_integer(c, c.output(), [&]<typename T>(T) -> Result<KernelPtr> {
    if constexpr (sizeof(T) > 2) {
      return c.unsupported("float32 to {}", ir::dtype_name(c.output().dtype));
    } else {
      return make_kernel([=, count = elem_count(c.input(0)), in = c.input_index(0), out = c.output_index()](Tensors t) {
        vector_math::quantize(t[in].data(), count, scale, zero_point, elements<T>(t[out]));
      });
    }
  });
}

// Dequantizes weights of a layer that computes in float.
KernelPtr dequantize_channels(const Context& c) {
  const ir::Tensor& input = c.input(0);
  size_t inner = 1;
  for (int d = input.quant.axis + 1; d < input.shape.rank(); ++d) inner *= static_cast<size_t>(input.shape[d]);
  return with_8bit(input.dtype, [&]<typename T>(T) {
    return make_kernel([inner, quant = input.quant, count = elem_count(input), in = c.input_index(0),
                        out = c.output_index()](Tensors t) {
      for (size_t i = 0; i < count; ++i) {
        const size_t channel = i / inner % quant.scales.size();
        const int32_t value = load_element<T>(t[in], i) - quant.zero_points[channel];
        elements<float>(t[out])[i] = quant.scales[channel] * static_cast<float>(value);
      }
    });
  });
}

KernelPtr requantize_bytes(const Context& c, QuantizedMultiplier by) {
  return look_up_kernel(c, byte_table_of(c, [&](int32_t value) {
                          const int32_t scaled =
                              multiply_by_quantized_multiplier(value - c.input(0).quant.zero_point(), by);
                          return wrapping_add(scaled, c.output().quant.zero_point());
                        }));
}

Result<KernelPtr> requantize(const Context& c) {
  const ir::Tensor &input = c.input(0), &output = c.output();
  const auto by =
      quantize_multiplier(static_cast<double>(input.quant.scale()) / static_cast<double>(output.quant.scale()));
  if (ir::is_8bit(input.dtype) && ir::is_8bit(output.dtype)) {
    SK_TRY(c.need_quantized(input));
    SK_TRY(c.need_quantized(output));
    return requantize_bytes(c, by);
  }
  return with_integer(c, input, [&](auto from_type) {
    return with_integer(c, output, [&](auto to_type) -> Result<KernelPtr> {
      using From = decltype(from_type);
      using To = decltype(to_type);
      return make_kernel([=, from = input.quant.zero_point(), to = output.quant.zero_point(), count = elem_count(input),
                          in = c.input_index(0), out = c.output_index()](Tensors t) {
        for (size_t i = 0; i < count; ++i) {
          const int32_t centred = wrapping_add(load_element<From>(t[in], i), -from);
          const int32_t value = wrapping_add(multiply_by_quantized_multiplier(centred, by), to);
          constexpr int32_t kMin = std::numeric_limits<To>::min(), kMax = std::numeric_limits<To>::max();
          elements<To>(t[out])[i] = static_cast<To>(std::clamp(value, kMin, kMax));
        }
      });
    });
  });
}

// Like static_cast, but defined for every float: saturates, and NaN becomes 0.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    if (std::isnan(value)) return 0;
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

// CAST converts blocks through a type that holds all values of the source type, so that no loop is needed for each pair
// of types.
constexpr size_t kBlock = 256;
template <typename Wide>
using LoadBlock = void (*)(std::span<const uint8_t> bytes, size_t first, std::span<Wide> block);

template <typename Wide, typename From>
void load_block(std::span<const uint8_t> bytes, size_t first, std::span<Wide> block) {
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<Wide>(load_value<From>(bytes, first + i));
}

template <typename Wide>
Result<KernelPtr> cast_from(const Context& c, LoadBlock<Wide> load) {
  return with_type(c, c.output().dtype, [&]<typename To>(To) -> Result<KernelPtr> {
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
  return c.input(0).dtype == ir::DType::float32 ? quantize_float(c) : requantize(c);
}

Result<KernelPtr> prepare_dequantize(const Context& c) {
  const ir::Tensor& input = c.input(0);
  if (c.output().dtype != ir::DType::float32) return c.unsupported("output type {}", ir::dtype_name(c.output().dtype));
  if (input.dtype == ir::DType::float16) {
    return make_kernel([count = elem_count(input), in = c.input_index(0), out = c.output_index()](Tensors t) {
      for (size_t i = 0; i < count; ++i) elements<float>(t[out])[i] = float_of_half(load_element<uint16_t>(t[in], i));
    });
  }
  const float scale = input.quant.scale();
  const int32_t zero_point = input.quant.zero_point();
  if (input.dtype == ir::DType::int16 && !input.quant.empty() && !input.quant.per_channel()) {
    return make_kernel([=, count = elem_count(input), in = c.input_index(0), out = c.output_index()](Tensors t) {
      for (size_t i = 0; i < count; ++i) {
        elements<float>(t[out])[i] = scale * static_cast<float>(load_element<int16_t>(t[in], i) - zero_point);
      }
    });
  }
  if (ir::is_8bit(input.dtype) && input.quant.per_channel()) return dequantize_channels(c);
  SK_TRY(c.need_quantized(input));
  return with_8bit(input.dtype, [&]<typename T>(T) {
    return make_kernel([=, count = elem_count(input), in = c.input_index(0), out = c.output_index()](Tensors t) {
      vector_math::dequantize(elements<const T>(t[in]), count, scale, zero_point, elements<float>(t[out]));
    });
  });
}

Result<KernelPtr> prepare_cast(const Context& c) {
  return with_type(c, c.input(0).dtype, [&]<typename From>(From) {
    using Wide = std::conditional_t<std::is_floating_point_v<From>, From, int64_t>;
    return cast_from<Wide>(c, load_block<Wide, From>);
  });
}

}  // namespace skillet::ref
