// The vector loops equal the plain ones, for random shapes and every tail length, on every instruction set of this CPU.
#include "simd/gemm.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/fixed_point.h"
#include "base/int_math.h"
#include "simd/testing/vector_targets.h"

namespace skillet::gemm {
namespace {

class Gemm : public VectorTargets {};

INSTANTIATE_TEST_SUITE_P(Targets, Gemm, all_vector_targets(), vector_target_name);

std::vector<int16_t> random_matrix(std::mt19937& random, size_t rows, size_t stride, size_t used, int limit) {
  std::vector<int16_t> out(rows * stride);
  std::uniform_int_distribution<int> value(-limit, limit);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < used; ++k) out[r * stride + k] = static_cast<int16_t>(value(random));
  }
  return out;
}

void check_matmul(std::mt19937& random, size_t rows, size_t cols, size_t used, int limit) {
  const size_t depth = align_up(used, kDepthAlign);
  const size_t a_stride = depth + random() % 5, b_stride = depth + random() % 7, c_stride = cols + random() % 3;
  const auto a = random_matrix(random, rows, a_stride, used, limit);
  const auto b = random_matrix(random, cols, b_stride, used, limit);
  std::vector<int32_t> c(rows * c_stride, 77);
  matmul_i16(a.data(), rows, a_stride, b.data(), cols, b_stride, depth, c.data(), c_stride);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t n = 0; n < c_stride; ++n) {
      uint32_t sum = n < cols ? 0 : 77;  // the gap between rows is not written
      for (size_t k = 0; n < cols && k < used; ++k) {
        sum += static_cast<uint32_t>(a[r * a_stride + k] * b[n * b_stride + k]);
      }
      ASSERT_EQ(c[r * c_stride + n], static_cast<int32_t>(sum)) << rows << "x" << cols << "x" << used;
    }
  }
}

TEST_P(Gemm, MatmulEqualsPlainLoop) {
  std::mt19937 random(1);
  for (size_t rows = 1; rows < 10; ++rows) {
    for (size_t cols = 1; cols < 10; ++cols) check_matmul(random, rows, cols, 1 + random() % 100, 255);
  }
  for (int i = 0; i < 20; ++i) check_matmul(random, 1 + random() % 70, 1 + random() % 70, 1 + random() % 700, 255);
  check_matmul(random, 5, 300, 4000, 255);  // more than one cache block
}

TEST_P(Gemm, MatmulWrapsAround) {
  std::mt19937 random(2);
  check_matmul(random, 7, 9, 500, 32767);
}

template <typename T>
void check_widen(int32_t zero_point) {
  std::mt19937 random(3);
  for (size_t count = 0; count < 100; ++count) {
    std::vector<T> in(count);
    for (T& x : in) x = static_cast<T>(random());
    std::vector<int16_t> out(count + 1, 1234);
    widen(in.data(), count, zero_point, out.data());
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], in[i] - zero_point);
    ASSERT_EQ(out[count], 1234);
  }
}

TEST_P(Gemm, Widen) {
  check_widen<uint8_t>(0);
  check_widen<uint8_t>(255);
  check_widen<int8_t>(-128);
  check_widen<int8_t>(127);
}

TEST_P(Gemm, AddTaps) {
  std::mt19937 random(6);
  for (size_t count = 0; count < 80; ++count) {
    const size_t taps = random() % 12;
    std::vector<size_t> offsets(taps);
    std::vector<int32_t> weights(taps);
    for (size_t t = 0; t < taps; ++t) {
      offsets[t] = random() % 50;
      weights[t] = static_cast<int32_t>(random()) >> (9 + random() % 2 * 14);
    }
    std::vector<uint8_t> in(count + 50);
    for (uint8_t& x : in) x = static_cast<uint8_t>(random());
    std::vector<int32_t> sums(count + 1, 77), expected = sums;
    for (size_t i = 0; i < count; ++i) {
      for (size_t t = 0; t < taps; ++t) expected[i] = wrapping_add(expected[i], weights[t] * in[offsets[t] + i]);
    }
    add_taps(in.data(), offsets.data(), weights.data(), taps, count, sums.data());
    ASSERT_EQ(sums, expected) << count;
  }
}

TEST_P(Gemm, DepthwisePixel) {
  std::mt19937 random(9);
  for (size_t count = 0; count < 80; ++count) {
    const size_t taps = random() % 10, stride = count + random() % 4;
    std::vector<int8_t> features(200), weights(taps * stride);
    for (int8_t& x : features) x = count % 3 == 0 ? -128 : static_cast<int8_t>(random());
    for (int8_t& x : weights) x = count % 3 == 0 ? -128 : static_cast<int8_t>(random());
    std::vector<const int8_t*> windows(taps);
    for (const int8_t*& window : windows) window = features.data() + random() % 100;
    std::vector<int32_t> sums(count + 1, 77), totals(count + 1, 78), expected = sums, expected_totals = totals;
    for (size_t i = 0; i < count; ++i) {
      expected[i] = expected_totals[i] = 0;
      for (size_t t = 0; t < taps; ++t) {
        expected[i] += windows[t][i] * weights[t * stride + i];
        expected_totals[i] += windows[t][i];
      }
    }
    depthwise_pixel(windows.data(), weights.data(), stride, taps, count, sums.data(), totals.data());
    ASSERT_EQ(sums, expected) << count;
    ASSERT_EQ(totals, expected_totals) << count;
  }
}

// The definition, with floor and remainder.
int32_t stepped(const Step& step, int32_t value, int32_t addend, int32_t multiplier) {
  const auto clamped = [](__int128 v) { return std::clamp<__int128>(v, INT32_MIN, INT32_MAX); };
  const __int128 product = clamped(__int128{value} + addend) * multiplier;
  const __int128 below = product >> step.shift, rest = (product - (below << step.shift)) * 2;
  const __int128 whole = static_cast<__int128>(1) << step.shift;
  bool up = rest > whole;
  if (rest == whole) {
    up = step.ties == Ties::up || (step.ties == Ties::away && product > 0) ||
         (step.ties == Ties::even && below % 2 != 0);
  }
  return std::min(std::max(static_cast<int32_t>(clamped(below + (up ? 1 : 0))), step.low), step.high);
}

int32_t random_value(std::mt19937& random) {
  const int32_t edges[] = {INT32_MIN, INT32_MAX, 0, -1, static_cast<int32_t>(random())};
  return random() % 2 ? edges[random() % 5] : static_cast<int32_t>(random()) >> (random() % 31);
}

TEST_P(Gemm, AStepAddsMultipliesRoundsAndClamps) {
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    const size_t count = random() % 40;
    std::vector<int32_t> values(count + 1, 42), addends(count), multipliers(count), expected = values;
    Step step{.shift = static_cast<int>(random() % 62), .ties = static_cast<Ties>(random() % 4)};
    const int32_t factors[] = {0, 1, 3, -5, INT32_MIN, INT32_MAX, 1 << std::clamp(step.shift - 1, 0, 30)};
    step.multiplier = factors[random() % 7];
    if (random() % 3 == 0) step.low = 0;
    if (random() % 3 == 0) step.high = random_value(random);
    if (random() % 2 == 0) step.addends = addends.data();
    if (random() % 2 == 0) step.multipliers = multipliers.data();
    for (size_t i = 0; i < count; ++i) {
      values[i] = random_value(random);
      addends[i] = random_value(random);
      multipliers[i] = random() % 2 == 0 ? factors[random() % 7] : random_value(random);
      expected[i] = stepped(step, values[i], step.addends != nullptr ? addends[i] : 0,
                            step.multipliers != nullptr ? multipliers[i] : step.multiplier);
    }
    run_step(step, count, values.data());
    ASSERT_EQ(values, expected) << "shift " << step.shift << ", ties " << static_cast<int>(step.ties);
  }
}

TEST_P(Gemm, MultiplyAdd) {
  std::mt19937 random(9);
  for (size_t count = 0; count < 80; ++count) {
    std::vector<int32_t> sums(count), factors(count), windows(count + 1);
    for (std::vector<int32_t>* const values : {&sums, &factors, &windows})
      std::ranges::generate(*values, [&] { return random_value(random); });
    for (const size_t step : {0, 1}) {
      std::vector<int32_t> values(count + 1, 42), expected = values;
      for (size_t i = 0; i < count; ++i)
        expected[i] = static_cast<int32_t>(sums[i] + int64_t{factors[i]} * windows[i * step]);
      multiply_add(sums.data(), factors.data(), windows.data(), step, count, values.data());
      ASSERT_EQ(values, expected) << count;
    }
  }
}

TEST_P(Gemm, Narrow) {
  std::mt19937 random(8);
  for (size_t count = 0; count < 80; ++count) {
    std::vector<int32_t> in(count);
    for (int32_t& x : in) x = static_cast<int32_t>(random()) >> (random() % 31);
    struct Case {
      int32_t low, high, offset;
    };
    for (const Case& c : {Case{0, 200, 55}, Case{-128, 127, 0}, Case{-300, -45, 300}}) {
      std::vector<uint8_t> out(count + 1, 42);
      narrow(in.data(), count, c.low, c.high, c.offset, out.data());
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], static_cast<uint8_t>(std::clamp(in[i], c.low, c.high) + c.offset)) << in[i];
      ASSERT_EQ(out[count], 42);
    }
  }
}

template <typename T>
void check_requantize(std::mt19937& random, size_t rows, size_t count, bool with_bias, int32_t largest_shift) {
  std::vector<int32_t> acc(rows * count), bias(count), multiplier(count), shift(count);
  for (int32_t& x : acc) x = static_cast<int32_t>(random()) >> (random() % 30);
  for (size_t i = 0; i < count; ++i) {
    bias[i] = static_cast<int32_t>(random()) >> 16;
    multiplier[i] = random() % 16 == 0 ? 0 : static_cast<int32_t>((1U << 30) + random() % (1U << 30));
    shift[i] = largest_shift - static_cast<int32_t>(random() % static_cast<uint32_t>(largest_shift + 32));
  }
  const Requantize how{.bias = with_bias ? bias.data() : nullptr,
                       .multiplier = multiplier.data(),
                       .shift = shift.data(),
                       .output_zero_point = 3,
                       .clamp_min = std::is_signed_v<T> ? -100 : 5,
                       .clamp_max = 120};
  std::vector<T> out(acc.size() + 1, 42);
  requantize(acc.data(), rows, count, how, out.data());
  for (size_t k = 0; k < acc.size(); ++k) {
    const size_t i = k % count;
    const int32_t x = with_bias ? wrapping_add(acc[k], bias[i]) : acc[k];
    const int64_t scaled = int64_t{multiply_by_quantized_multiplier(x, {multiplier[i], shift[i]})} + 3;
    if (scaled > INT32_MAX) continue;  // the zero point is added in 32 bits
    const int64_t expected = std::min<int64_t>(std::max<int64_t>(scaled, how.clamp_min), how.clamp_max);
    ASSERT_EQ(out[k], expected) << x << " * " << multiplier[i] << " shift " << shift[i];
  }
  ASSERT_EQ(out.back(), 42);
}

TEST_P(Gemm, RequantizeEqualsFixedPoint) {
  std::mt19937 random(5);
  for (size_t count = 0; count < 200; ++count) {
    for (const int32_t largest_shift : {30, 0, -1}) {
      check_requantize<uint8_t>(random, random() % 5, count, count % 2 == 0, largest_shift);
      check_requantize<int8_t>(random, 1 + random() % 4, count, count % 3 == 0, largest_shift);
    }
  }
}

}  // namespace
}  // namespace skillet::gemm
