// How far apart the sums are at which two ways of rounding change to another output, for several channels at once. Each
// number equals that of a plain loop over one channel, bit by bit.
// Called by npus/rockchip/compiler/rk3576_rounding.cpp.
// Must not know: convolutions, what is done with the numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace skillet::likely_changes {

constexpr size_t kChannels = 8, kOutputsMax = 256, kDifferences = 65;
using PerChannel = std::array<double, kChannels>;

// Outputs `first`, `first` + 1, ... of each channel, and how likely they are: 1 / (1 + ((output - mean) / spread)^2).
// The first way changes to an output at the least whole number that is not below
//   ((output * power - half + (output <= 0 ? below : 0)) * 2^31 - 2^30) / divisor
// Channels that are not used have the count 0 and the divisor 1.
struct Channels {
  PerChannel first{}, count{}, mean{}, spread{}, power{}, half{}, below{}, divisor{};
};
// The second way: ((output * 2^steps - half + (output <= 0 ? 1 : 0)) * 2^shift - 2^(shift-1) + odd) / factor, with half
// of 2^steps, and odd = 1 if the number before it is odd; without steps or a shift, without what belongs to them.
struct Steps {
  int32_t steps = 0, shift = 0;
};

struct Work {
  alignas(64) double weights[kOutputsMax * kChannels], sums[kOutputsMax * kChannels], apart[kOutputsMax * kChannels];
  size_t outputs = 0;
};
// Fills weights and sums; the sum of each channel's weights.
PerChannel weigh(const Channels& channels, Work& work);

struct Compared {
  PerChannel distance{};  // the sum of weight * |second sum - first sum|
  PerChannel lowest{};    // kDifferences / 2 below this difference of the middle output
  // Weights by the difference above the lowest one, larger and smaller ones clamped: of even outputs, and of odd ones.
  std::array<std::array<std::array<double, kDifferences>, kChannels>, 2> weights{};
};
void compare(const Channels& channels, const Steps& steps, const PerChannel& factors, Work& work, Compared& out);
// After compare(): its distance with `added` subtracted from the second sums.
PerChannel distance_with(const PerChannel& added, const Work& work);

}  // namespace skillet::likely_changes
