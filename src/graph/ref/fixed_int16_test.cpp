// Sigmoid and tanh of all 16-bit values, for each number of integer bits, against the C library.
#include "graph/ref/fixed_int16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "graph/ref/hard_swish.h"

namespace skillet::ref {
namespace {

struct Errors {
  double most = 0, sum = 0;  // in units of 2^-15
};

template <typename Fixed, typename Real>
Errors errors_of(Fixed&& fixed, Real&& real, int integer_bits) {
  Errors out;
  for (int x = -32768; x <= 32767; ++x) {
    const double exact = real(std::ldexp(x, integer_bits - 15)) * 32768;
    const double error = fixed(static_cast<int16_t>(x), integer_bits) - exact;
    out.most = std::max(out.most, std::abs(error));
    out.sum += std::abs(error);
  }
  return out;
}

// Measured error of the formula; a constant that is wrong by 2^-13 gives a larger error.
constexpr double kMostOfSigmoid = 6.8, kMostOfTangent = 12.1;
constexpr struct {
  double sigmoid, tangent;
} kMean[] = {{2.1, 4.15}, {2.1, 4.15}, {2.12, 4.1}, {2.05, 2.95}, {1.55, 2}, {1.05, 1.5}, {0.8, 1.3}};

TEST(FixedInt16, IsNearTheRealFunctions) {
  for (int bits = 0; bits <= 6; ++bits) {
    SCOPED_TRACE(bits);
    const Errors sigmoid = errors_of(
        fixed_logistic, [](double x) { return 1 / (1 + std::exp(-x)); }, bits);
    EXPECT_LT(sigmoid.most, kMostOfSigmoid);
    EXPECT_LT(sigmoid.sum / 65536, kMean[bits].sigmoid);
    const Errors tangent = errors_of(
        fixed_tanh, [](double x) { return std::tanh(x); }, bits);
    EXPECT_LT(tangent.most, kMostOfTangent);
    EXPECT_LT(tangent.sum / 65536, kMean[bits].tangent);
  }
}

TEST(FixedInt16, IsSymmetric) {
  for (int bits = 0; bits <= 6; ++bits) {
    for (int x = 1; x <= 32767; ++x) {
      const auto plus = static_cast<int16_t>(x), minus = static_cast<int16_t>(-x);
      ASSERT_EQ(fixed_tanh(minus, bits), -fixed_tanh(plus, bits)) << x << " " << bits;
      ASSERT_EQ(fixed_logistic(minus, bits) + fixed_logistic(plus, bits), 32767) << x << " " << bits;
    }
  }
}

// As in TFLite's kernel: a shift beyond the bits of the type leaves -1 or 1.
TEST(HardSwish, LeavesASignOfWhatIsShiftedBeyondItsBits) {
  for (const auto& [value, exponent, wanted] :
       {std::array{64, -15, 0}, {-64, -15, 0}, {64, -16, 1}, {-64, -16, -1}, {0, -16, 1}}) {
    const HardSwish params{.output_multiplier = INT16_MAX, .output_exponent = exponent};
    EXPECT_EQ(hard_swish(params, value), wanted) << value << ", " << exponent;
  }
}

}  // namespace
}  // namespace skillet::ref
