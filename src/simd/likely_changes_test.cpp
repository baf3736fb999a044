// Numbers of several channels equal those of plain loops in whole numbers, bit by bit, on every instruction set of this
// CPU.
#include "simd/likely_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "simd/testing/vector_targets.h"

namespace skillet::likely_changes {
namespace {

class LikelyChanges : public VectorTargets {};

INSTANTIATE_TEST_SUITE_P(Targets, LikelyChanges, all_vector_targets(), vector_target_name);

int64_t ceil_of(int64_t value, int64_t by) { return value / by + (value % by > 0 ? 1 : 0); }
int64_t first_step(int64_t output, int32_t steps) {
  if (steps == 0) return output;
  return output * (int64_t{1} << steps) - (int64_t{1} << (steps - 1)) + (output <= 0 ? 1 : 0);
}

struct One {
  int32_t first = 0, count = 0, own_steps = 0;
  int64_t divisor = 1;
  double mean = 0, spread = 1;
  int64_t factor = 1;

  int64_t first_sum(int64_t output) const {
    return ceil_of(first_step(output, own_steps) * (int64_t{1} << 31) - (int64_t{1} << 30), divisor);
  }
  int64_t second_sum(int64_t output, const Steps& by) const {
    const int64_t step = first_step(output, by.steps);
    if (by.shift == 0) return ceil_of(step, factor);
    return ceil_of(step * (int64_t{1} << by.shift) - (int64_t{1} << (by.shift - 1)) + (step & 1), factor);
  }
  int64_t apart(int32_t place, const Steps& by) const {
    return second_sum(first + place, by) - first_sum(first + place);
  }
  double weight(int32_t place) const {
    volatile double far = (first + place - mean) / spread;  // volatile: nothing is fused
    far = far * far;
    return 1 / (1 + far);
  }
  double distance(const Steps& by, int64_t added) const {
    volatile double all = 0;
    for (int32_t i = 0; i < count; ++i) {
      volatile double part = weight(i) * static_cast<double>(std::abs(apart(i, by) - added));
      all = all + part;
    }
    return all;
  }
};

One random_one(std::mt19937& random, const Steps& by) {
  One out;
  out.first = static_cast<int32_t>(random() % 250) - 127;
  out.count = 1 + static_cast<int32_t>(random() % static_cast<uint32_t>(128 - out.first));
  out.mean = static_cast<double>(random() % 4000) / 16 - 125;
  out.spread = 1 + static_cast<double>(random() % 1000) / 8;
  out.factor = 160 + static_cast<int64_t>(random() % 32000);
  const double gain = std::ldexp(static_cast<double>(out.factor) * (1 + static_cast<double>(random() % 64) / 1e5),
                                 -by.steps - by.shift);
  int exponent = 0;
  out.divisor = std::llround(std::ldexp(std::frexp(gain, &exponent), 31));
  out.own_steps = std::clamp(-exponent, 0, 20);
  return out;
}

Channels channels_of(std::span<const One> ones) {
  Channels out;
  out.spread.fill(1), out.divisor.fill(1);
  for (size_t i = 0; i < ones.size(); ++i) {
    const One& one = ones[i];
    out.first[i] = one.first, out.count[i] = one.count, out.mean[i] = one.mean, out.spread[i] = one.spread;
    out.power[i] = std::ldexp(1, one.own_steps), out.divisor[i] = static_cast<double>(one.divisor);
    out.half[i] = one.own_steps == 0 ? 0 : std::ldexp(1, one.own_steps - 1);
    out.below[i] = one.own_steps == 0 ? 0 : 1;
  }
  return out;
}

void compare(const One& one, size_t i, const Steps& by, const Compared& judged, double total) {
  double all = 0;
  std::array<std::array<double, kDifferences>, 2> weights{};
  const int64_t lowest = one.apart(one.count / 2, by) - static_cast<int64_t>(kDifferences / 2);
  for (int32_t place = 0; place < one.count; ++place) {
    all += one.weight(place);
    const int64_t at = std::clamp<int64_t>(one.apart(place, by) - lowest, 0, kDifferences - 1);
    weights[static_cast<size_t>(place % 2)][static_cast<size_t>(at)] += one.weight(place);
  }
  EXPECT_EQ(total, all);
  EXPECT_EQ(judged.lowest[i], static_cast<double>(lowest));
  EXPECT_EQ(judged.distance[i], one.distance(by, 0));
  EXPECT_EQ(judged.weights[0][i], weights[0]);
  EXPECT_EQ(judged.weights[1][i], weights[1]);
}

TEST_P(LikelyChanges, EqualPlainLoops) {
  std::mt19937 random(1);
  const auto work = std::make_unique<Work>();
  const auto judged = std::make_unique<Compared>();
  for (const Steps by : {Steps{0, 0}, Steps{0, 9}, Steps{1, 0}, Steps{1, 12}, Steps{7, 14}, Steps{20, 5}}) {
    for (const size_t count : {size_t{1}, size_t{5}, kChannels}) {
      std::vector<One> ones;
      PerChannel factors, added{};
      factors.fill(1);
      for (size_t i = 0; i < count; ++i) {
        ones.push_back(random_one(random, by));
        factors[i] = static_cast<double>(ones[i].factor);
        added[i] = static_cast<double>(random() % 5) - 2;
      }
      const Channels channels = channels_of(ones);
      const PerChannel total = weigh(channels, *work);
      compare(channels, by, factors, *work, *judged);
      const PerChannel with = distance_with(added, *work);
      for (size_t i = 0; i < count; ++i) {
        SCOPED_TRACE(testing::Message() << by.steps << " steps, shift " << by.shift << ", channel " << i);
        compare(ones[i], i, by, *judged, total[i]);
        EXPECT_EQ(with[i], ones[i].distance(by, static_cast<int64_t>(added[i])));
      }
    }
  }
}

}  // namespace
}  // namespace skillet::likely_changes
