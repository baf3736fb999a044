#include "graph/ref/softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "graph/ref/int16_table.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

constexpr int kDiffIntegerBits = 5;
constexpr int kSumIntegerBits = 12;

int32_t mul(int32_t a, int32_t b) { return saturating_rounding_doubling_high_mul(a, b); }

int32_t saturating_shift_left(int32_t x, int amount) {
  const int64_t shifted = int64_t{x} * (int64_t{1} << amount);
  return static_cast<int32_t>(std::clamp<int64_t>(shifted, INT32_MIN, INT32_MAX));
}

// (a + b) / 2, rounded to nearest, halves away from zero.
int32_t rounding_half_sum(int32_t a, int32_t b) {
  const int64_t sum = int64_t{a} + b;
  return static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
}

// exp(a) for a in [-1/4, 0), both Q31: a Taylor series around -1/8.
int32_t exp_quarter(int32_t a) {
  constexpr int32_t kExpOfMinusEighth = 1895147668;
  constexpr int32_t kThird = 715827883;
  const int32_t x = wrapping_add(a, 1 << 28);
  const int32_t x2 = mul(x, x);
  const int32_t x3 = mul(x2, x);
  const int32_t x4_over_4 = rounding_divide_by_pot(mul(x2, x2), 2);
  const int32_t tail = rounding_divide_by_pot(wrapping_add(mul(wrapping_add(x4_over_4, x3), kThird), x2), 1);
  return wrapping_add(kExpOfMinusEighth, mul(kExpOfMinusEighth, wrapping_add(x, tail)));
}

}  // namespace

int32_t exp_on_negative_values(int32_t x) {
  constexpr int kFractionalBits = 31 - kDiffIntegerBits;
  constexpr int32_t kQuarter = 1 << (kFractionalBits - 2);
  // exp(-2^k) in Q31 for k = -2 .. 4
  constexpr int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  if (x == 0) return std::numeric_limits<int32_t>::max();
  const int32_t in_quarter = (x & (kQuarter - 1)) - kQuarter;
  int32_t result = exp_quarter(saturating_shift_left(in_quarter, kDiffIntegerBits));
  const int32_t remainder = in_quarter - x;
  for (int k = -2; k < kDiffIntegerBits; ++k) {
    if ((remainder & (1 << (kFractionalBits + k))) != 0) result = mul(result, kPowers[k + 2]);
  }
  return result;
}

int32_t reciprocal_of_one_plus(int32_t x) {
  constexpr int32_t k48Over17 = 1515870810, kMinus32Over17 = -1010580540;  // 2 integer bits
  constexpr int32_t kOne = 1 << 29;                                        // 2 integer bits
  // Newton's method on half of the denominator.
  const int32_t half_denominator = rounding_half_sum(x, std::numeric_limits<int32_t>::max());
  int32_t y = wrapping_add(k48Over17, mul(half_denominator, kMinus32Over17));
  for (int i = 0; i < 3; ++i) {
    const int32_t rest = kOne - mul(half_denominator, y);
    y = wrapping_add(y, saturating_shift_left(mul(y, rest), 2));
  }
  return saturating_shift_left(y, 1);
}

Reciprocal reciprocal(int32_t x, int integer_bits) {
  const int headroom = std::countl_zero(static_cast<uint32_t>(x));
  const auto minus_one = static_cast<int32_t>((static_cast<uint32_t>(x) << headroom) - (1U << 31));
  return {reciprocal_of_one_plus(minus_one), integer_bits - headroom};
}

namespace {

struct SoftmaxPlan {
  QuantizedMultiplier input;
  int32_t diff_min = 0;  // smaller differences to the row's maximum are ignored
  // exps[d] = exp of the difference -d to the row's maximum, Q31.
  std::array<int32_t, 256> exps{};
};

template <typename In, typename Out>
void softmax_row(const SoftmaxPlan& plan, const In* in, size_t depth, Out* out) {
  constexpr int32_t kMin = std::numeric_limits<Out>::min(), kMax = std::numeric_limits<Out>::max();
  const int32_t max = *std::max_element(in, in + depth);
  int64_t sum = 0;
  for (size_t i = 0; i < depth; ++i) {
    const int32_t diff = in[i] - max;
    if (diff < plan.diff_min) continue;
    sum += rounding_divide_by_pot(plan.exps[static_cast<size_t>(-diff)], kSumIntegerBits);
  }
  // From a sum of 512 on, every quotient is at most half a step of 1/256. TFLite shifts by more than 31 bits there,
  // which is undefined; this code returns the rounded quotient.
  if (sum >= int64_t{512} << (31 - kSumIntegerBits)) {
    std::fill_n(out, depth, static_cast<Out>(kMin));
    return;
  }
  const Reciprocal scale = reciprocal(static_cast<int32_t>(sum), kSumIntegerBits);
  const int shift = scale.num_bits_over_unit + 31 - 8;  // 23..31: the sum is 1 to 512
  for (size_t i = 0; i < depth; ++i) {
    const int32_t diff = in[i] - max;
    out[i] = static_cast<Out>(kMin);
    if (diff < plan.diff_min) continue;
    const int32_t value = rounding_divide_by_pot(mul(scale.value, plan.exps[static_cast<size_t>(-diff)]), shift);
    out[i] = static_cast<Out>(std::clamp(value + kMin, kMin, kMax));
  }
}

Result<KernelPtr> quantized_softmax(const Context& c) {
  SoftmaxPlan plan;
  SK_TRY(c.need_quantized(c.input(0)));
  if (c.output().dtype != c.input(0).dtype) return c.unsupported("{} output", ir::dtype_name(c.output().dtype));
  const double beta = c.attrs<ir::SoftmaxAttrs>().beta;
  const double real = std::min(beta * static_cast<double>(c.input(0).quant.scale()) * (1 << (31 - kDiffIntegerBits)),
                               static_cast<double>(INT32_MAX));
  if (!(real > 1))
    return c.unsupported("beta * input scale is {}", beta * static_cast<double>(c.input(0).quant.scale()));
  plan.input = quantize_multiplier(real);
  plan.diff_min = -calculate_input_radius(kDiffIntegerBits, plan.input.shift);
  for (int32_t d = 0; d < 256 && -d >= plan.diff_min; ++d) {
    plan.exps[static_cast<size_t>(d)] = exp_on_negative_values(multiply_by_quantized_multiplier(-d, plan.input));
  }
  return with_8bit(c.input(0).dtype, [&]<typename T>(T) {
    return rows_kernel<T>(c, [plan](const T* in, size_t depth, T* out) { softmax_row(plan, in, depth, out); });
  });
}

}  // namespace

// TFLite rounds the product of beta and scale to float.
Int16Softmax::Int16Softmax(float beta, float input_scale)
    : exp(Int16Table::of_double(10.0 / UINT16_MAX, INT16_MAX, 2.0 / UINT16_MAX, [](double x) { return std::exp(x); })),
      reciprocal(
          Int16Table::of_double(1.0 / UINT16_MAX, INT16_MIN, 2.0 / UINT16_MAX, [](double x) { return 1 / (1 + x); })),
      input(quantize_multiplier(static_cast<double>(beta * input_scale) / (10.0 / UINT16_MAX))) {}

void Int16Softmax::run(const int16_t* in, size_t depth, int16_t* out) const {
  const auto limited = [](int32_t x) { return static_cast<int16_t>(std::clamp<int32_t>(x, INT16_MIN, INT16_MAX)); };
  const int32_t max = *std::max_element(in, in + depth);
  uint32_t sum = 0;
  for (size_t i = 0; i < depth; ++i) {
    const int32_t scaled = multiply_by_quantized_multiplier(in[i] - max, input);
    out[i] = exp(limited(wrapping_add(scaled, INT16_MAX)));
    sum += static_cast<uint32_t>(int32_t{out[i]});
  }
  const int headroom = std::countl_zero(sum);
  const auto shifted = static_cast<int32_t>(((int64_t{sum} << (headroom - 1)) + (1 << 13)) >> 14);
  const int64_t scale = reciprocal(limited(shifted - (1 << 15) - (1 << 16)));
  const int right = 31 - headroom;
  for (size_t i = 0; i < depth; ++i) {
    const int64_t value = (out[i] * scale + (int64_t{1} << (right - 1))) >> right;
    out[i] = static_cast<int16_t>(std::clamp<int64_t>(value, 0, INT16_MAX));
  }
}

namespace {

Result<KernelPtr> int16_softmax(const Context& c) {
  SK_TRY(c.need_int16(1));
  // A longer row could give a sum of 2^16 times the largest value of exp().
  const int32_t depth = c.input(0).shape.back(0);
  if (depth >= 1 << 16) return c.unsupported("rows of {} values", depth);
  const float beta = c.attrs<ir::SoftmaxAttrs>().beta;
  if (!(beta > 0)) return c.unsupported("beta {}", beta);
  const Int16Softmax softmax(beta, c.input(0).quant.scale());
  return rows_kernel<int16_t>(c,
                              [softmax](const int16_t* in, size_t size, int16_t* out) { softmax.run(in, size, out); });
}

KernelPtr float_softmax(const Context& c) {
  return rows_kernel<float>(c, [beta = c.attrs<ir::SoftmaxAttrs>().beta](const float* from, size_t depth, float* to) {
    const float max = *std::max_element(from, from + depth);
    float sum = 0;
    for (size_t i = 0; i < depth; ++i) sum += to[i] = std::exp((from[i] - max) * beta);
    for (size_t i = 0; i < depth; ++i) to[i] /= sum;
  });
}

}  // namespace

Result<KernelPtr> prepare_softmax(const Context& c) {
  if (c.input(0).dtype == ir::DType::float32 && c.output().dtype == ir::DType::float32) return float_softmax(c);
  if (c.input(0).dtype == ir::DType::int16) return int16_softmax(c);
  return quantized_softmax(c);
}

}  // namespace skillet::ref
