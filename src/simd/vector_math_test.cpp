// The vector loops equal the plain ones, for every tail length and any quantization, on every instruction set of this
// CPU.
#include "simd/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/half.h"
#include "simd/testing/vector_targets.h"

namespace skillet::vector_math {
namespace {

class VectorMath : public VectorTargets {};

INSTANTIATE_TEST_SUITE_P(Targets, VectorMath, all_vector_targets(), vector_target_name);

template <typename T>
T random_of(std::mt19937& random) {
  return static_cast<T>(random());
}

template <typename T>
void check_quantize(const std::vector<float>& in, float scale, int32_t zero_point) {
  constexpr double kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  std::vector<uint8_t> bytes(in.size() * sizeof(float) + 1);  // at an odd address
  std::memcpy(bytes.data() + 1, in.data(), in.size() * sizeof(float));
  std::vector<T> out(in.size() + 1, T{77});
  quantize(bytes.data() + 1, in.size(), scale, zero_point, out.data());
  for (size_t i = 0; i < in.size(); ++i) {
    const float scaled = in[i] / scale;
    const double rounded = std::isnan(scaled) ? kMin * 2 : std::round(static_cast<double>(scaled)) + zero_point;
    ASSERT_EQ(out[i], static_cast<T>(std::clamp(rounded, kMin, kMax)))
        << in[i] << " / " << scale << " of " << in.size();
  }
  EXPECT_EQ(out.back(), T{77});  // nothing is written beyond the end
}

TEST_P(VectorMath, QuantizeRoundsHalvesAwayFromZeroAndSaturates) {
  std::mt19937 random(1);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t count = 1; count < 70; ++count) {
    std::vector<float> in(count);
    for (float& x : in) {
      const float special[] = {inf, -inf, nan, 1e30F, -1e30F, 0.0F};
      x = random() % 5 == 0 ? special[random() % 6]
                            : static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.25F;
    }
    check_quantize<int8_t>(in, 0.5F, 3);
    check_quantize<uint8_t>(in, 0.7F, 200);
    check_quantize<int16_t>(in, 0.003F, 0);
  }
}

// Quotients close to halves, where the product with the inverse of the scale may round differently.
TEST_P(VectorMath, QuantizeDividesNextToHalves) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const float scale = std::uniform_real_distribution<float>(0.001F, 0.3F)(random);
    std::vector<float> in(40);
    for (float& x : in) {
      const float half = (static_cast<float>(static_cast<int>(random() % 256) - 128) + 0.5F) * scale;
      const int steps = static_cast<int>(random() % 5) - 2;
      x = half;
      for (int k = 0; k < std::abs(steps); ++k) x = std::nextafter(x, steps < 0 ? -1e9F : 1e9F);
    }
    check_quantize<int8_t>(in, scale, 0);
    check_quantize<uint8_t>(in, scale, 128);
    check_quantize<int16_t>(in, scale, 0);
  }
  check_quantize<int8_t>({1e-40F, -3e-40F, 0, 5, 2.5e-40F}, 1e-40F, 1);
  check_quantize<int16_t>({1e38F, -3e38F, 0, 5, 1.5e38F}, 1e38F, 0);
}

template <typename T>
void check_dequantize(std::mt19937& random, size_t count) {
  std::vector<T> in(count);
  for (T& x : in) x = random_of<T>(random);
  std::vector<float> out(count + 1, 77);
  dequantize(in.data(), count, 0.37F, -5, out.data());
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], 0.37F * static_cast<float>(in[i] + 5)) << i << " of " << count;
  EXPECT_EQ(out.back(), 77);
}

TEST_P(VectorMath, Dequantize) {
  std::mt19937 random(6);
  for (size_t count = 1; count < 70; ++count) {
    check_dequantize<int8_t>(random, count);
    check_dequantize<uint8_t>(random, count);
  }
}

template <typename T>
void check_maximum(std::mt19937& random, size_t rows, size_t count) {
  constexpr T kLow = std::numeric_limits<T>::min() + 20, kHigh = std::numeric_limits<T>::max() - 20;
  std::vector<T> in(rows * count), out(count + 1, T{77});
  for (T& x : in) x = random_of<T>(random);
  std::vector<const T*> from;
  for (size_t r = 0; r < rows; ++r) from.push_back(in.data() + r * count);
  maximum(from.data(), rows, count, kLow, kHigh, out.data());
  for (size_t i = 0; i < count; ++i) {
    T most = in[i];
    for (size_t r = 1; r < rows; ++r) most = std::max(most, in[r * count + i]);
    ASSERT_EQ(out[i], std::clamp(most, kLow, kHigh)) << i << " of " << count;
  }
  EXPECT_EQ(out.back(), T{77});
}

TEST_P(VectorMath, MaximumOfBytes) {
  std::mt19937 random(2);
  for (size_t count = 1; count < 200; ++count) {
    check_maximum<int8_t>(random, 1 + count % 7, count);
    check_maximum<uint8_t>(random, 1 + count % 7, count);
  }
}

TEST_P(VectorMath, LookUpEveryByte) {
  std::mt19937 random(7);
  for (const size_t count : {1, 15, 16, 63, 64, 100, 256, 700}) {
    std::array<uint8_t, 256> table;
    for (uint8_t& entry : table) entry = random_of<uint8_t>(random);
    std::vector<uint8_t> in(count), out(count + 1, 77);
    for (size_t i = 0; i < count; ++i) in[i] = static_cast<uint8_t>(i);
    look_up(in.data(), count, table, out.data());
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], table[in[i]]) << i << " of " << count;
    EXPECT_EQ(out.back(), 77);
  }
}

int32_t expected_operand(int32_t value, const Operand& o) {
  const int32_t x = (value - o.zero_point) * (1 << o.left_shift);
  return o.by ? multiply_by_quantized_multiplier(x, *o.by) : x;
}

int32_t expected_both(Combine how, int32_t a, int32_t b) {
  switch (how) {
    case Combine::sum: return a + b;
    case Combine::difference: return a - b;
    case Combine::product: return a * b;
    case Combine::squared_difference: return (a - b) * (a - b);
  }
  return 0;
}

template <typename T>
void check_combine(std::mt19937& random, size_t count, const Combination& c) {
  std::vector<T> a(count), b(count), out(count + 1, T{77});
  for (T& x : a) x = random_of<T>(random);
  for (T& x : b) x = random_of<T>(random);
  combine(a.data(), b.data(), count, c, out.data());
  for (size_t i = 0; i < count; ++i) {
    const int32_t x = expected_operand(a[i * c.a.step], c.a), y = expected_operand(b[i * c.b.step], c.b);
    const int32_t value = multiply_by_quantized_multiplier(expected_both(c.how, x, y), c.output) + c.zero_point;
    ASSERT_EQ(out[i], static_cast<T>(std::clamp(value, c.min, c.max))) << i << " of " << count;
  }
  EXPECT_EQ(out.back(), T{77});
}

TEST_P(VectorMath, CombineEqualsPlainLoop) {
  std::mt19937 random(3);
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  for (size_t i = 0; i < 400; ++i) {
    const auto how = static_cast<Combine>(i % 4);
    const int shift = how == Combine::squared_difference ? 7 : 20;
    const auto operand = [&] {
      Operand made{.zero_point = static_cast<int32_t>(random() % 100),
                   .step = random() % 3 == 0 ? size_t{0} : size_t{1}};
      if (how == Combine::product) return made;
      made.left_shift = shift;
      // An operand with a far smaller scale than the other one contributes nothing.
      made.by = quantize_multiplier(random() % 8 == 0 ? 1e-30 : real(0.01, 0.5));
      return made;
    };
    const double unit = how == Combine::product ? 1 : shift == 7 ? 1 << 14 : 1 << 20;
    const Combination c{.how = how,
                        .a = operand(),
                        .b = operand(),
                        .output = quantize_multiplier(real(0.001, 3) / unit),
                        .zero_point = static_cast<int32_t>(random() % 100),
                        .min = -100,
                        .max = 110};
    check_combine<int8_t>(random, 1 + i % 67, c);
    check_combine<uint8_t>(
        random, 1 + i % 67,
        Combination{
            .how = c.how, .a = c.a, .b = c.b, .output = c.output, .zero_point = c.zero_point, .min = 5, .max = 250});
  }
}

TEST(Half, OfEachKind) {
  EXPECT_EQ(float_of_half(0x3c00), 1.0F);
  EXPECT_EQ(float_of_half(0xc500), -5.0F);
  EXPECT_EQ(float_of_half(0x7bff), 65504.0F);
  EXPECT_EQ(float_of_half(0x0001), 0x1p-24F);
  EXPECT_EQ(float_of_half(0x83ff), -0x1.ff8p-15F);
  EXPECT_EQ(float_of_half(0x0400), 0x1p-14F);
  EXPECT_EQ(float_of_half(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float_of_half(0x7e01)));
  EXPECT_TRUE(std::signbit(float_of_half(0x8000)));
}

}  // namespace
}  // namespace skillet::vector_math
