// Gains as the chip multiplies them: their values, their errors, and refused gains.
#include "npus/rockchip/compiler/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

namespace skillet::npus::rockchip {
namespace {

TEST(RockchipNumerics, GainsHaveFifteenBits) {
  EXPECT_EQ(value_of(operand_gain(1.0F)), 1.0);
  EXPECT_EQ(value_of(power_of_two(3)), 0.125);
  EXPECT_EQ(value_of(output_gain(1.0F, true)), 16385.0 / 16384);
  EXPECT_EQ(value_of(output_gain(std::nextafter(4.0F, 0.0F), true)), 4.0) << "a mantissa of all ones, rounded up";
  EXPECT_EQ(value_of(output_gain(std::nextafter(4.0F, 0.0F), false)), 2.0) << "as recorded";
  for (double value = 1e-6; value < 1e4; value *= 1.37) {
    const auto given = static_cast<float>(value);
    const double cut = value_of(operand_gain(given)), up = value_of(output_gain(given, true));
    EXPECT_LE(cut, given);
    EXPECT_GT(up, given);
    for (const double got : {cut, up}) EXPECT_NEAR(got / given, 1, 1.0 / (1 << 14)) << given;
  }
}

TEST(RockchipNumerics, ShiftsHaveSixBits) {
  for (const auto& [shift, valid] : {std::pair{-1, false}, {0, true}, {63, true}, {64, false}})
    EXPECT_EQ(is_valid({1 << 14, shift}), valid) << shift;
}

TEST(RockchipNumerics, HalvesGoToTheEvenOne) {
  const Gain half{1, 1};
  for (const auto& [value, product] : {std::pair{1, 0}, {2, 1}, {3, 2}, {5, 2}, {-1, 0}, {-3, -2}, {-5, -2}})
    EXPECT_EQ(multiplied(value, half), product) << value;
}

// A step of a product is at most an eighth of a step of the output, if there is room.
TEST(RockchipNumerics, GainsOfChannels) {
  for (const double largest : {1e-4, 0.01, 0.125, 0.13, 1.0, 7.0, 300.0}) {
    const std::array gains = {largest, largest / 3, largest / 1000};
    const ChannelGains got = channel_gains(gains);
    ASSERT_EQ(got.multipliers.size(), gains.size());
    EXPECT_LE(value_of(got.out), 0.125 * (1 + 1.0 / (1 << 13))) << largest;
    for (size_t i = 0; i < gains.size(); ++i) {
      const double step = std::ldexp(value_of(got.out), -got.shift);
      EXPECT_NEAR(got.multipliers[i] * step, gains[i], step * 0.51) << largest << ", channel " << i;
    }
    EXPECT_GT(got.multipliers[0], 32000) << "all bits are used";
  }
}

TEST(RockchipNumerics, WholeStepsAsFarAsTheShiftGoes) {
  for (const auto& [gain, shift, multiplier] :
       {std::tuple{32767.0, 0, 32767}, {1.0, 14, 1 << 14}, {0.3, 16, 19661}, {std::ldexp(1, -49), 63, 1 << 14}}) {
    const auto got = whole_step_gains(std::array{gain, gain / 2});
    ASSERT_TRUE(got.has_value()) << gain;
    EXPECT_EQ(got->shift, shift) << gain;
    EXPECT_EQ(got->multipliers[0], multiplier) << gain;
    EXPECT_NEAR(got->multipliers[1], multiplier / 2.0, 0.5) << gain;
    EXPECT_EQ(value_of(got->out), 1.0);
  }
  EXPECT_FALSE(whole_step_gains(std::array{32768.0}).has_value());
  EXPECT_FALSE(whole_step_gains(std::array{std::ldexp(1, -50)}).has_value());
}

TEST(RockchipNumerics, FactorsOfASumAreOdd) {
  for (const auto& [main, other] : {std::pair{1.0, 1.0}, {0.7, 0.01}, {0.01, 0.7}, {4000.0, 1.0}, {1e-6, 1e-7}}) {
    const auto got = sum_gains(main, other);
    ASSERT_TRUE(got.has_value()) << main;
    EXPECT_EQ(got->main % 2, 1);
    EXPECT_EQ(got->other % 2, 1);
    EXPECT_LT(std::max(got->main, got->other), 1 << 15);
    EXPECT_GE(std::max(got->main, got->other), 1 << 14) << "all bits are used";
    EXPECT_NEAR(std::ldexp(got->main, -got->step_log2), main, std::ldexp(1, -got->step_log2));
    EXPECT_NEAR(std::ldexp(got->other, -got->step_log2), other, std::ldexp(1, -got->step_log2));
  }
  for (const auto& [log2, step] : {std::pair{12, 2}, {0, 14}, {-26, 40}}) {
    const auto got = sum_gains(std::ldexp(1, log2), 0.5 * std::ldexp(1, log2));
    ASSERT_TRUE(got.has_value()) << log2;
    EXPECT_EQ(got->step_log2, step);
  }
  EXPECT_FALSE(sum_gains(std::ldexp(1, 13), 1).has_value());
  EXPECT_FALSE(sum_gains(1, std::ldexp(1, 13)).has_value());
  EXPECT_FALSE(sum_gains(std::ldexp(1, -27), std::ldexp(1, -27)).has_value());
}

}  // namespace
}  // namespace skillet::npus::rockchip
