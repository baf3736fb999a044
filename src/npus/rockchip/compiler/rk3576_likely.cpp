#include "npus/rockchip/compiler/rk3576_likely.h"

#include <cmath>
#include <numeric>

#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

int32_t own_steps(double gain) {
  int exponent = 0;
  std::frexp(gain, &exponent);
  return std::clamp<int32_t>(-exponent, 0, kStepsMax);
}
// How far the middle of two outputs moves down when steps are rounded first. Without fraction bits it is rounded once.
double moved(int32_t steps) { return steps == 0 ? 0 : std::ldexp(1, -steps - 1); }

// Sums over the weights of a kernel.
struct WeightSums {
  int64_t above = 0, below = 0, squares = 0;
  int32_t unit = 0;  // greatest common divisor
};

constexpr size_t kBlock = 1 << 14;  // weights before sums of 32 bits overflow

WeightSums sums_of_kernel(const uint8_t* weights, size_t taps, uint8_t flip, int32_t zero) {
  WeightSums out;
  for (size_t at = 0; at < taps; at += kBlock) {
    const size_t end = std::min(taps, at + kBlock);
    int32_t above = 0, all = 0, squares = 0;
    for (size_t i = at; i < end; ++i) {
      const auto weight = static_cast<int16_t>((weights[i] ^ flip) - zero);
      above += std::max<int16_t>(weight, 0);
      all += weight;
      squares += weight * weight;
    }
    out.above += above, out.below += all - above, out.squares += squares;
  }
  for (size_t i = 0; i < taps && out.unit != 1; ++i) out.unit = std::gcd(out.unit, (weights[i] ^ flip) - zero);
  return out;
}

// Of all channels: [tap][channel].
std::vector<WeightSums> sums_of_depthwise(const Conv& conv, size_t count, size_t taps) {
  std::vector<WeightSums> out(count);
  std::vector<uint8_t> kernel(taps);
  for (size_t c = 0; c < count; ++c) {
    for (size_t i = 0; i < taps; ++i) kernel[i] = conv.weights.data()[i * count + c];
    out[c] = sums_of_kernel(kernel.data(), taps, conv.weight_flip, conv.zero_of(c));
  }
  return out;
}

std::vector<WeightSums> sums_of_weights(const Conv& conv, size_t count) {
  const size_t taps = conv.weights.size() / count;
  if (conv.depthwise) return sums_of_depthwise(conv, count, taps);
  std::vector<WeightSums> out(count);
  for (size_t c = 0; c < count; ++c)
    out[c] = sums_of_kernel(conv.weights.data() + c * taps, taps, conv.weight_flip, conv.zero_of(c));
  return out;
}

}  // namespace

Range range_of(const Conv& conv) {
  return {conv.clamp.on ? std::max(0, INT8_MIN - conv.out_offset) : INT8_MIN - conv.out_offset,
          INT8_MAX - conv.out_offset};
}

// Typical inputs of networks: after a RELU some 30 steps above zero, else on both sides of it.
std::vector<Channel> likely_channels(std::span<const float> products, float out_scale, const Conv& conv) {
  constexpr int32_t kNearEnd = 8;
  constexpr double kAbove = 25, kDeviation = 35, kAlike = 2;  // neighbours are alike: sums spread more
  const int32_t zero = conv.input_zero - kZeroPoint;
  const double input = zero + (conv.input_zero < kNearEnd ? kAbove : 0);
  const std::vector<WeightSums> sums = sums_of_weights(conv, products.size());
  std::vector<Channel> channels(products.size());
  for (size_t c = 0; c < channels.size(); ++c) {
    const auto& [above, below, squares, unit] = sums[c];
    const double gain = double{products[c]} / out_scale;
    const int32_t bias = c < conv.bias.size() ? conv.bias[c] : 0;
    channels[c] = {.gain = gain,
                   .mean = (bias + static_cast<double>(above + below) * input) * gain,
                   .spread = std::sqrt(static_cast<double>(squares)) * kDeviation * kAlike * gain,
                   .lowest = bias + INT8_MIN * above + INT8_MAX * below,
                   .highest = bias + INT8_MAX * above + INT8_MIN * below,
                   .unit = std::max(unit, 1),
                   .once = conv.once,
                   .moved = conv.once ? 0 : moved(own_steps(gain))};
  }
  return channels;
}

std::optional<Channel> common(std::span<const Channel> channels) {
  Channel one = channels[0];
  double mean = 0, squares = 0;
  for (const Channel& c : channels) {
    const bool same_sums = c.unit == one.unit && (c.unit == 1 || c.lowest == one.lowest);
    if (c.gain != one.gain || !same_sums) return std::nullopt;
    one.lowest = std::min(one.lowest, c.lowest);
    one.highest = std::max(one.highest, c.highest);
    mean += c.mean, squares += c.mean * c.mean + c.spread * c.spread;
  }
  const auto count = static_cast<double>(channels.size());
  one.mean = mean / count;
  one.spread = std::sqrt(std::max(squares / count - one.mean * one.mean, 0.0));
  return one;
}

int32_t shift_for(double largest, int32_t steps) {
  int exponent = 0;
  std::frexp(std::ldexp(largest, steps), &exponent);
  return kMultiplierBits - exponent;
}

int16_t factor_of(double exact) {
  constexpr double kHalf = 0.5;
  return static_cast<int16_t>(std::clamp<double>(exact + kHalf, 1, INT16_MAX));
}

namespace {

// Expected part of a channel's outputs that differ with multipliers of 1/`one`. Above and below zero halves go opposite
// ways; the number added is the best for one of the two.
double otherwise(const Channel& c, Range range, double moved_by_chip, double one) {
  constexpr double kCoarse = 0.02;  // largest part, with a multiplier below kFine
  constexpr double kHalf = 0.5;
  constexpr double kEither = 0.2;  // smallest part of the results to assume on each side of zero
  const double exact = c.gain * one;
  const int16_t factor = factor_of(exact);
  const double slope = factor < kFine ? 0 : factor / exact - 1, half = moved_by_chip - c.moved;
  const double first = std::clamp<double>(c.mean - c.spread, range.first, range.last);
  const double last = std::clamp<double>(c.mean + c.spread, range.first, range.last);
  const double middle = std::clamp(0.0, first, last);
  const double above = slope * (middle + last) / 2 + half, below = slope * (middle + first) / 2 - half;
  double share = last > first ? (last - middle) / (last - first) : last > 0 ? 1 : 0;
  share = std::clamp(share, range.last > 0 ? kEither : 0, range.first < 0 ? 1 - kEither : 1);
  const auto with = [&](double much) {
    const double sums = much / c.gain;
    const double added = c.gain * static_cast<double>(static_cast<int64_t>(sums + (sums < 0 ? -kHalf : kHalf)));
    return share * std::abs(above - added) + (1 - share) * std::abs(below - added);
  };
  const double reach = std::min(c.gain * static_cast<double>(c.highest - c.lowest), 1.0);
  return std::min({with(above), with(below), with(0)}) +
         (factor < kFine ? kCoarse * reach : std::abs(slope) * (last - first) / 8);
}

}  // namespace

std::array<double, kStepsMax + 1> BySteps::of(size_t first, size_t end) {
  if (first != first_) begin(first);
  for (; seen_ < end; ++seen_) {
    const double gain = channels_[seen_].gain;
    least_ = std::min(least_, gain);
    if (shift_for(gain, 0) < shift_for(most_, 0)) forget_sums();
    most_ = std::max(most_, gain);
  }
  std::array<double, kStepsMax + 1> parts{};
  for (int32_t steps = 0; steps <= kStepsMax; ++steps) {
    // Numbers beyond those of the channels themselves give the same as the nearest one.
    const bool is_beyond = steps < own_steps(most_) - 1 || (steps > own_steps(least_) + 1 && steps < kStepsMax);
    parts[static_cast<size_t>(steps)] =
        is_beyond ? std::numeric_limits<double>::infinity() : sum(steps, end) / static_cast<double>(end - first);
  }
  return parts;
}

void BySteps::begin(size_t first) {
  first_ = seen_ = first;
  least_ = std::numeric_limits<double>::infinity(), most_ = 0;
  forget_sums();
}

void BySteps::forget_sums() {
  sums_.fill(0);
  ends_.fill(first_);
}

double BySteps::sum(int32_t steps, size_t end) {
  const auto at = static_cast<size_t>(steps);
  const double one = std::ldexp(1, steps + shift_for(most_, steps)), by_chip = moved(steps);
  for (; ends_[at] < end; ++ends_[at]) sums_[at] += otherwise(channels_[ends_[at]], range_, by_chip, one);
  return sums_[at];
}

}  // namespace skillet::npus::rockchip::rk3576
