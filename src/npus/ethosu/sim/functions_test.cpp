// What the chip's functions of 16 bits compute, beside those of their names.
#include "npus/ethosu/sim/functions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skillet::sim::ethosu {
namespace {

TEST(Functions, AreCloseToThoseOfTheirNames) {
  constexpr double kOne = 3 * 4096, kResult = 32768, kSteps = 3;  // that lines between the values may be off
  for (int64_t value = -140000; value <= 140000; value += 7) {
    const double x = static_cast<double>(value) / kOne;
    ASSERT_NEAR(hardware_sigmoid(value), kResult / (1 + std::exp(-x)), kSteps) << value;
    ASSERT_NEAR(hardware_tanh(value), kResult * std::tanh(x), kSteps) << value;
  }
}

TEST(Functions, StayAtTheirEnds) {
  for (const int64_t value : {int64_t{1} << 20, int64_t{1} << 40}) {
    EXPECT_NEAR(hardware_sigmoid(value), 32767, 1) << value;
    EXPECT_NEAR(hardware_sigmoid(-value), 0, 1) << value;
    EXPECT_NEAR(hardware_tanh(value), 32767, 1) << value;
    EXPECT_NEAR(hardware_tanh(-value), -32767, 1) << value;
  }
  EXPECT_EQ(hardware_tanh(0), 0);
  EXPECT_EQ(hardware_sigmoid(0), 16384);
}

}  // namespace
}  // namespace skillet::sim::ethosu
