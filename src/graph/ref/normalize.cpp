// L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION: each row is scaled by one function of its values.
#include <algorithm>
#include <cmath>

#include "graph/ref/inverse_sqrt.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

void l2_float_row(const float* in, size_t size, float* out) {
  constexpr float kEpsilon = 1e-6F;
  float sum = 0;
  for (size_t i = 0; i < size; ++i) sum += in[i] * in[i];
  const float norm = std::max(std::sqrt(sum), kEpsilon);
  for (size_t i = 0; i < size; ++i) out[i] = in[i] / norm;
}

// Output steps are 1/128.
template <typename T>
void l2_row(const T* in, size_t size, int32_t zero_point, T* out) {
  constexpr int kOutputShift = 7;
  constexpr bool kSigned = std::is_signed_v<T>;
  const Range range = kSigned ? Range{-128, 127} : Range{0, 255};
  const int32_t output_zero = kSigned ? 0 : 128;
  int32_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum = wrapping_add(sum, (in[i] - zero_point) * (in[i] - zero_point));
  QuantizedMultiplier by = inverse_sqrt(sum);
  // The place where the steps are applied decides how the last bit is rounded.
  if (kSigned) by.shift += kOutputShift;
  const int32_t step = kSigned ? 1 : 1 << kOutputShift;
  for (size_t i = 0; i < size; ++i) {
    const int32_t value = multiply_by_quantized_multiplier((in[i] - zero_point) * step, by) + output_zero;
    out[i] = static_cast<T>(std::clamp(value, range.min, range.max));
  }
}

}  // namespace

Result<KernelPtr> prepare_l2_normalization(const Context& c) {
  const ir::Activation activation = c.attrs<ir::ActivationAttrs>().activation;
  if (activation != ir::Activation::none) return c.unsupported("fused activation {}", ir::activation_name(activation));
  if (c.input(0).dtype == ir::DType::float32) return rows_kernel<float>(c, l2_float_row);
  SK_TRY(c.need_quantized(c.input(0)));
  return with_8bit(c.input(0).dtype, [&]<typename T>(T) {
    return rows_kernel<T>(c, [zero_point = c.input(0).quant.zero_point()](const T* in, size_t size, T* out) {
      l2_row(in, size, zero_point, out);
    });
  });
}

// A window of TFLite's reference kernel ends before the value `radius` after the middle, but begins with the value
// `radius` before it.
Result<KernelPtr> prepare_local_response_normalization(const Context& c) {
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return rows_kernel<float>(
      c, [attrs = c.attrs<ir::LocalResponseNormalizationAttrs>()](const float* in, size_t size, float* out) {
        const auto radius = static_cast<size_t>(attrs.radius);
        for (size_t i = 0; i < size; ++i) {
          float sum = 0;
          for (size_t k = i > radius ? i - radius : 0; k < std::min(size, i + radius); ++k) sum += in[k] * in[k];
          out[i] = in[i] * std::pow(attrs.bias + attrs.alpha * sum, -attrs.beta);
        }
      });
}

}  // namespace skillet::ref
