// Rows of depthwise convolutions equal the plain loop, for every number of channels and taps, contiguous or strided, on
// every instruction set of this CPU.
#include "simd/depthwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/fixed_point.h"
#include "simd/testing/vector_targets.h"

namespace skillet::depthwise {
namespace {

class Depthwise : public VectorTargets {};

INSTANTIATE_TEST_SUITE_P(Targets, Depthwise, all_vector_targets(), vector_target_name);

struct Case {
  size_t taps, channels, stride, pixels;
  int32_t largest_shift;
};

std::vector<int16_t> random_values(std::mt19937& random, size_t count, bool extreme) {
  std::vector<int16_t> values(count);
  for (int16_t& x : values) x = static_cast<int16_t>(extreme ? 255 : static_cast<int>(random() % 511) - 255);
  return values;
}

template <typename T>
void check(std::mt19937& random, const Case& c) {
  const size_t step = c.channels * c.stride;
  const auto image = random_values(random, c.pixels * step + 100 + kReadBeyond, random() % 5 == 0);
  const auto weights = random_values(random, c.taps * c.channels, random() % 5 == 0);
  std::vector<int32_t> bias(c.channels), multiplier(c.channels), shift(c.channels);
  for (size_t i = 0; i < c.channels; ++i) {
    bias[i] = static_cast<int32_t>(random()) >> (random() % 20);
    multiplier[i] = random() % 16 == 0 ? 0 : static_cast<int32_t>((1U << 30) + random() % (1U << 30));
    shift[i] = c.largest_shift - static_cast<int32_t>(random() % 14);
  }
  const gemm::Requantize how{.bias = bias.data(),
                             .multiplier = multiplier.data(),
                             .shift = shift.data(),
                             .output_zero_point = 3,
                             .clamp_min = std::is_signed_v<T> ? -100 : 5,
                             .clamp_max = 120};
  std::vector<const int16_t*> taps(c.taps + 1);
  for (const int16_t*& tap : taps) tap = image.data() + random() % 100;
  std::vector<T> out(c.pixels * c.channels + 1, T{42});
  run(pack(weights.data(), c.taps, c.channels, step, how), taps.data(), c.pixels, out.data());
  for (size_t k = 0; k + 1 < out.size(); ++k) {
    const size_t i = k % c.channels, at = k / c.channels * step + i;
    int32_t sum = bias[i];
    for (size_t t = 0; t < c.taps; ++t) sum = wrapping_add(sum, taps[t][at] * weights[t * c.channels + i]);
    const int32_t scaled = multiply_by_quantized_multiplier(sum, {multiplier[i], shift[i]});
    const int32_t expected = std::clamp(wrapping_add(scaled, 3), how.clamp_min, how.clamp_max);
    ASSERT_EQ(out[k], expected) << c.taps << " taps, " << c.channels << " channels, stride " << c.stride;
  }
  ASSERT_EQ(out.back(), T{42});  // nothing is written beyond the end
}

TEST_P(Depthwise, EqualsPlainLoop) {
  std::mt19937 random(1);
  for (size_t channels = 1; channels <= 140; ++channels) {
    for (const size_t taps : {0, 1, 2, 9, 25}) {
      const Case c{.taps = taps + random() % 2,
                   .channels = channels,
                   .stride = 1 + random() % 2,
                   .pixels = 1 + random() % 12,
                   .largest_shift = channels % 3 == 0 ? 6 : 0};
      check<uint8_t>(random, c);
      check<int8_t>(random, c);
    }
  }
}

// More taps than any loop is unrolled for.
TEST_P(Depthwise, ManyTaps) {
  std::mt19937 random(2);
  for (const size_t channels : {3, 32, 50}) {
    check<int8_t>(random, {.taps = 999, .channels = channels, .stride = 1, .pixels = 3, .largest_shift = 0});
  }
}

}  // namespace
}  // namespace skillet::depthwise
