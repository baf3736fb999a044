// Rounding, saturation and quantized multipliers against exact arithmetic and hand-computed values.
#include "base/fixed_point.h"

#include <gtest/gtest.h>

#include <random>

namespace skillet {
namespace {

constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax = std::numeric_limits<int32_t>::max();

TEST(FixedPoint, HighMulRoundsHalvesUpAndSaturates) {
  EXPECT_EQ(saturating_rounding_doubling_high_mul(kMin, kMin), kMax);
  EXPECT_EQ(saturating_rounding_doubling_high_mul(kMin, kMax), -kMax);
  EXPECT_EQ(saturating_rounding_doubling_high_mul(1, 1 << 30), 1);    //  0.5 -> 1
  EXPECT_EQ(saturating_rounding_doubling_high_mul(-1, 1 << 30), 0);   // -0.5 -> 0
  EXPECT_EQ(saturating_rounding_doubling_high_mul(-3, 1 << 30), -1);  // -1.5 -> -1
  EXPECT_EQ(saturating_rounding_doubling_high_mul(3, 1 << 30), 2);    //  1.5 -> 2
}

// gemmlowp's own formula: a nudge by sign, then a truncating division.
TEST(FixedPoint, HighMulEqualsTruncatingForm) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto a = static_cast<int32_t>(random()) >> (random() % 32);
    const auto b = static_cast<int32_t>(random());
    const int64_t product = int64_t{a} * b;
    const int64_t nudge = product >= 0 ? 1 << 30 : 1 - (1 << 30);
    ASSERT_EQ(saturating_rounding_doubling_high_mul(a, b), (product + nudge) / (int64_t{1} << 31));
  }
}

TEST(FixedPoint, DivideByPotRoundsHalvesAwayFromZero) {
  const int32_t in[] = {-6, -5, -3, -2, -1, 0, 1, 2, 3, 5, 6};
  const int32_t quarter[] = {-2, -1, -1, -1, 0, 0, 0, 1, 1, 1, 2};
  for (size_t i = 0; i < std::size(in); ++i) EXPECT_EQ(rounding_divide_by_pot(in[i], 2), quarter[i]) << in[i];
  EXPECT_EQ(rounding_divide_by_pot(-7, 0), -7);
  EXPECT_EQ(rounding_divide_by_pot(kMax, 31), 1);
  EXPECT_EQ(rounding_divide_by_pot(kMin, 31), -1);
}

TEST(FixedPoint, QuantizeMultiplier) {
  EXPECT_EQ(quantize_multiplier(0.0), (QuantizedMultiplier{0, 0}));
  EXPECT_EQ(quantize_multiplier(1.0), (QuantizedMultiplier{1 << 30, 1}));
  EXPECT_EQ(quantize_multiplier(0.75), (QuantizedMultiplier{3 << 29, 0}));
  EXPECT_EQ(quantize_multiplier(3.0), (QuantizedMultiplier{3 << 29, 2}));
  EXPECT_EQ(quantize_multiplier(1.0 - 0x1p-40), (QuantizedMultiplier{1 << 30, 1}));  // rounds up to the next power
  EXPECT_EQ(quantize_multiplier(0x1p-33), (QuantizedMultiplier{0, 0}));
  EXPECT_EQ(quantize_multiplier(0x1p40), (QuantizedMultiplier{kMax, 30}));
  EXPECT_EQ(quantize_multiplier(std::numeric_limits<double>::infinity()), (QuantizedMultiplier{0, 0}));
}

TEST(FixedPoint, MultiplyIsCloseToTheRealProduct) {
  std::mt19937 random(2);
  for (int i = 0; i < 10000; ++i) {
    const double real =
        std::ldexp(1.0 + static_cast<double>(random() % 1000) / 1000, static_cast<int>(random() % 12) - 10);
    const auto x = static_cast<int32_t>(random() % 200001) - 100000;
    ASSERT_NEAR(multiply_by_quantized_multiplier(x, quantize_multiplier(real)), x * real, 1.0);
  }
}

TEST(FixedPoint, InputRadius) {
  EXPECT_EQ(calculate_input_radius(4, 27), 15);
  EXPECT_EQ(calculate_input_radius(5, 20), (31 << 26) >> 20);
}

}  // namespace
}  // namespace skillet
