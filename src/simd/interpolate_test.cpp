// Resized rows equal the plain formulas, for every depth, on every instruction set of this CPU.
#include "simd/interpolate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "simd/testing/vector_targets.h"

namespace skillet::interpolate {
namespace {

class Interpolate : public VectorTargets {};

INSTANTIATE_TEST_SUITE_P(Targets, Interpolate, all_vector_targets(), vector_target_name);

// In 64 bits, with the division of the definition.
int8_t expected(const int8_t p[4], int32_t y, int32_t x, int8_t) {
  const int64_t sum = int64_t{p[0]} * (1024 - y) * (1024 - x) + int64_t{p[1]} * y * (1024 - x) +
                      int64_t{p[2]} * (1024 - y) * x + int64_t{p[3]} * y * x;
  return static_cast<int8_t>(std::round(static_cast<double>(sum) / (1 << 20)));
}

// Each product and sum is rounded to float in a variable, so that nothing is fused.
template <typename T>
T expected(const T p[4], float y, float x, T) {
  const float rows[] = {1 - y, y, 1 - y, y}, cols[] = {1 - x, 1 - x, x, x};
  volatile float sum = 0;
  for (int i = 0; i < 4; ++i) {
    volatile float part = static_cast<float>(p[i]) * rows[i];
    part = part * cols[i];
    sum = sum + part;
  }
  return std::is_same_v<T, float> ? static_cast<T>(sum) : static_cast<T>(sum + 0.5F);
}

template <typename T>
T random_of(std::mt19937& random) {
  const auto byte = static_cast<int>(random() % 256);
  return static_cast<T>(std::is_signed_v<T> ? byte - 128 : byte) * static_cast<T>(std::is_same_v<T, float> ? 0.37F : 1);
}

template <typename T, typename Position>
void check(std::mt19937& random, size_t depth, Position one) {
  constexpr size_t kWidth = 5, kColumns = 9;
  std::vector<T> low(kWidth * depth), high(low.size()), out(kColumns * depth + 1, T{77});
  for (T& x : low) x = random_of<T>(random);
  for (T& x : high) x = random_of<T>(random);
  const auto part = [&] {
    return static_cast<Position>(static_cast<float>(one) * static_cast<float>(random() % 9) / 8);
  };
  std::vector<Place<Position>> across(kColumns);
  for (auto& x : across) x = {random() % kWidth, random() % kWidth, part()};
  // Before the first pixel only that pixel is used.
  across[0] = {0, 0, -one / 4};
  const Position down = part();
  row(low.data(), high.data(), down, across, depth, out.data());
  for (size_t k = 0; k < kColumns * depth; ++k) {
    const auto& x = across[k / depth];
    const size_t left = x.low * depth + k % depth, right = x.high * depth + k % depth;
    const T corners[] = {low[left], high[left], low[right], high[right]};
    ASSERT_EQ(out[k], expected(corners, down, x.at, T{})) << depth << " channels, element " << k;
  }
  EXPECT_EQ(out.back(), T{77});  // nothing is written beyond the end
}

TEST_P(Interpolate, EqualsPlainFormula) {
  std::mt19937 random(1);
  for (size_t depth = 1; depth <= 70; ++depth) {
    for (int i = 0; i < 5; ++i) {
      check<int8_t, int32_t>(random, depth, 1024);
      check<uint8_t, float>(random, depth, 1.0F);
      check<float, float>(random, depth, 1.0F);
    }
  }
}

}  // namespace
}  // namespace skillet::interpolate
