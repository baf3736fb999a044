// Likely sums of a convolution's channels, and how many outputs differ from TensorFlow Lite's by the number of steps.
// Called by rk3576_rounding.cpp.
// Must not know: how a multiplier is found.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "npus/rockchip/compiler/operations.h"

namespace skillet::npus::rockchip::rk3576 {

constexpr int32_t kStepsMax = 20, kMultiplierBits = 15;
constexpr int32_t kFine = 160;  // smallest multiplier that is not coarse

// A channel: its gain; mean and spread of its results, in steps of the output. Sums are `lowest` plus multiples of
// `unit`, up to `highest`.
struct Channel {
  double gain = 0, mean = 0, spread = 0;
  int64_t lowest = 0, highest = 0;
  int32_t unit = 1;
  std::optional<int32_t> once;  // Conv::once
  double moved = 0;             // how far TensorFlow Lite moves the middle of two outputs above zero down
};

// Results within the limits, in steps of the output above its zero point.
struct Range {
  int32_t first = 0, last = 0;
};
Range range_of(const Conv& conv);

std::vector<Channel> likely_channels(std::span<const float> products, float out_scale, const Conv& conv);
// One channel for all, if they have the same gain; else none.
std::optional<Channel> common(std::span<const Channel> channels);

// The shift with which the largest product of `steps` has 15 bits.
int32_t shift_for(double largest, int32_t steps);
int16_t factor_of(double exact);

// Expected part of all channels' outputs that differ, by the number of steps: of the channels so far.
class BySteps {
 public:
  BySteps(std::span<const Channel> channels, Range range) : channels_(channels), range_(range) {}

  // Of the channels [first, end). Calls with the same first channel add to the sums of those before.
  std::array<double, kStepsMax + 1> of(size_t first, size_t end);

 private:
  void begin(size_t first);
  void forget_sums();
  double sum(int32_t steps, size_t end);

  std::span<const Channel> channels_;
  Range range_;
  size_t first_ = SIZE_MAX, seen_ = 0;
  double least_ = 0, most_ = 0;
  std::array<double, kStepsMax + 1> sums_{};
  std::array<size_t, kStepsMax + 1> ends_{};  // of the channels in each sum
};

}  // namespace skillet::npus::rockchip::rk3576
