// LOG_SOFTMAX: for float32, and for 8-bit values in the 32-bit fixed point of TFLite's reference kernel.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "graph/ref/kernel.h"
#include "graph/ref/softmax.h"

namespace skillet::ref {
namespace {

constexpr int kDiffIntegerBits = 5, kSumIntegerBits = 12, kOutputIntegerBits = 4;

int32_t mul(int32_t a, int32_t b) { return saturating_rounding_doubling_high_mul(a, b); }
int32_t limited(int64_t x) { return static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX)); }
int32_t shift_left(int32_t x, int by) { return limited(int64_t{x} * (int64_t{1} << by)); }

// The natural logarithm of x >= 1. x has kSumIntegerBits integer bits, the result kDiffIntegerBits. It is computed from
// the power of two, and a rational function of the rest around the fourth root of 1/2.
int32_t log_of_sum(int32_t x) {
  constexpr int32_t kLog2 = 1488522236, kFourthRootOfHalf = 1805811301, kRootOfHalf = 1518500250, kQuarter = 536870912;
  constexpr int32_t kAlphaN = 117049297, kAlphaD = 127690142, kAlphaI = 1057819769, kAlphaF = 638450708;
  constexpr int kBits = kDiffIntegerBits + 1;  // one more bit while terms are added
  constexpr int32_t kShiftedQuarter = kQuarter >> kBits;
  const auto power = [](int bits) { return shift_left(bits, 31 - kBits); };
  // Computed for x and for x times the root of 1/2. The smaller rest and the larger power are used.
  const int a_headroom = std::countl_zero(static_cast<uint32_t>(x));
  const int32_t a_rest = shift_left(mul(shift_left(x, a_headroom - 1), kRootOfHalf), 1);
  const int32_t a_power = limited(int64_t{power(kSumIntegerBits - a_headroom)} + kShiftedQuarter);
  const int b_headroom = std::countl_zero(static_cast<uint32_t>(mul(x, kRootOfHalf))) - 1;
  const int32_t b_rest = shift_left(x, b_headroom);
  const int32_t b_power = limited(int64_t{power(kSumIntegerBits - b_headroom)} - kShiftedQuarter);
  const int32_t rest = std::min(a_rest, b_rest), whole = std::max(a_power, b_power);
  const int64_t sum = int64_t{rest} + kFourthRootOfHalf;
  const auto p = static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  const int32_t half_q = rest - kFourthRootOfHalf, q = wrapping_add(half_q, half_q), q2 = mul(q, q);
  const int32_t numerator = wrapping_add(mul(q, rest), mul(mul(q, q2), kAlphaN));
  const int32_t denominator =
      wrapping_add(mul(p, wrapping_add(wrapping_add(kAlphaI, q), mul(kAlphaD, q2))), mul(kAlphaF, q));
  const int32_t inverse = reciprocal_of_one_plus(denominator);
  const int32_t fraction = mul(rounding_divide_by_pot(numerator, kBits), inverse);
  return shift_left(wrapping_add(mul(whole, kLog2), fraction), 1);
}

struct LogSoftmax {
  QuantizedMultiplier input, back;  // to and from steps of 2^(kDiffIntegerBits - 31)
  int32_t diff_min = 0;

  int32_t rescaled(int32_t diff) const { return multiply_by_quantized_multiplier(diff, input); }
  template <typename T>
  void run(const T* in, size_t size, T* out) const;
};

template <typename T>
void LogSoftmax::run(const T* in, size_t size, T* out) const {
  constexpr int32_t kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  const int32_t max = *std::max_element(in, in + size);
  int32_t sum = 0;
  for (size_t i = 0; i < size; ++i) {
    if (in[i] - max < diff_min) continue;
    sum = wrapping_add(sum, rounding_divide_by_pot(exp_on_negative_values(rescaled(in[i] - max)), kSumIntegerBits));
  }
  const int32_t log_sum = log_of_sum(sum);
  const int32_t lowest = multiply_by_quantized_multiplier(wrapping_add(log_sum, INT32_MIN), back);
  const int32_t limit = std::max(diff_min - 1, lowest);
  for (size_t i = 0; i < size; ++i) {
    const int32_t diff = in[i] - max;
    int32_t value = kMin;
    if (diff > limit) {
      value =
          rounding_divide_by_pot(wrapping_add(rescaled(diff), -log_sum), 31 - kDiffIntegerBits - kOutputIntegerBits);
      value = std::clamp(wrapping_add(value, kMax), kMin, kMax);
    }
    out[i] = static_cast<T>(value);
  }
}

void float_row(const float* in, size_t size, float* out) {
  const float max = *std::max_element(in, in + size);
  float sum = 0;
  for (size_t i = 0; i < size; ++i) sum += std::exp(in[i] - max);
  const float log_sum = std::log(sum);
  for (size_t i = 0; i < size; ++i) out[i] = in[i] - max - log_sum;
}

}  // namespace

Result<KernelPtr> prepare_log_softmax(const Context& c) {
  if (c.input(0).dtype == ir::DType::float32) return rows_kernel<float>(c, float_row);
  SK_TRY(c.need_quantized(1));
  const ir::Quant& out = c.output().quant;
  if (out.scale() != 16.0F / 256 || out.zero_point() != type_range(c.output().dtype).max) {
    return c.unsupported("output scale {}, zero point {}; expected 1/16 and {}", out.scale(), out.zero_point(),
                         type_range(c.output().dtype).max);
  }
  constexpr size_t kMostValues = size_t{1} << kSumIntegerBits;  // larger sums might overflow
  if (static_cast<size_t>(c.input(0).shape.back(0)) >= kMostValues) {
    return c.unsupported("rows of {} values", c.input(0).shape.back(0));
  }
  const double real = std::min(static_cast<double>(c.input(0).quant.scale()) * (1 << (31 - kDiffIntegerBits)),
                               static_cast<double>(INT32_MAX));
  if (!(real > 1)) return c.unsupported("input scale {}", c.input(0).quant.scale());
  LogSoftmax op{.input = quantize_multiplier(real)};
  const double applied = std::ldexp(op.input.multiplier, op.input.shift - 31);
  op.back = quantize_multiplier(1 / applied);
  op.diff_min = -calculate_input_radius(kDiffIntegerBits, op.input.shift);
  return with_8bit(c.input(0).dtype, [&]<typename T>(T) {
    return rows_kernel<T>(c, [op](const T* in, size_t size, T* to) { op.run(in, size, to); });
  });
}

}  // namespace skillet::ref
