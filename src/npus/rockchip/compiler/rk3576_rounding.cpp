// Multipliers, shifts and biases with which as few outputs as possible differ from TensorFlow Lite's.
// TensorFlow Lite rounds a product twice: to steps of 2^-own, where the gain is between 1/2 and 1 of a step, and then
// to whole numbers, halves away from zero. The chip does the same with steps of 2^-k, one k for all channels, and
// multipliers of 15 bits. A result differs where an output changes at another sum. The number added to a channel's sums
// makes most of these changes equal TensorFlow Lite's, among the likely sums.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/fixed_point.h"
#include "base/int_math.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/rk3576.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

constexpr int32_t kStepsMax = 20, kMultiplierBits = 15, kOneMultiplierLog2 = 14;
constexpr int32_t kExactShift = 32;  // outputs, in steps, leave as many bits
constexpr int32_t kFine = 160;       // smallest multiplier that is not coarse

int32_t limit_of(double value) {
  return static_cast<int32_t>(std::min<double>(value, std::numeric_limits<int32_t>::max()));
}

// ---- likely sums

int32_t own_steps(double gain) {
  int exponent = 0;
  std::frexp(gain, &exponent);
  return std::clamp<int32_t>(-exponent, 0, kStepsMax);
}
// How far the middle of two outputs moves down when steps are rounded first. Without fraction bits it is rounded once.
double moved(int32_t steps) { return steps == 0 ? 0 : std::ldexp(1, -steps - 1); }

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
Range range_of(const Conv& conv) {
  return {conv.clamp.on ? std::max(0, INT8_MIN - conv.out_offset) : INT8_MIN - conv.out_offset,
          INT8_MAX - conv.out_offset};
}

// Typical inputs of networks: after a RELU some 30 steps above zero, else on both sides of it.
std::vector<Channel> likely_channels(std::span<const float> products, float out_scale, const Conv& conv) {
  constexpr int32_t kNearEnd = 8;
  constexpr double kAbove = 25, kDeviation = 35, kAlike = 2;  // neighbours are alike: sums spread more
  const size_t count = products.size(), taps = conv.weights.size() / count;
  const int32_t zero = conv.input_zero - kZeroPoint;
  const double input = zero + (conv.input_zero < kNearEnd ? kAbove : 0);
  std::vector<Channel> channels(count);
  for (size_t c = 0; c < count; ++c) {
    double squares = 0;
    int64_t above = 0, below = 0;  // sums of weights
    int32_t unit = 0;
    for (size_t i = 0; i < taps; ++i) {
      const int32_t weight = conv.weight(conv.depthwise ? i * count + c : c * taps + i) - conv.zero_of(c);
      (weight > 0 ? above : below) += weight;
      squares += double(weight) * weight;
      if (unit != 1) unit = std::gcd(unit, weight);
    }
    const double gain = double{products[c]} / out_scale;
    const int32_t bias = c < conv.bias.size() ? conv.bias[c] : 0;
    channels[c] = {.gain = gain,
                   .mean = (bias + static_cast<double>(above + below) * input) * gain,
                   .spread = std::sqrt(squares) * kDeviation * kAlike * gain,
                   .lowest = bias + INT8_MIN * above + INT8_MAX * below,
                   .highest = bias + INT8_MAX * above + INT8_MIN * below,
                   .unit = std::max(unit, 1),
                   .once = conv.once,
                   .moved = conv.once ? 0 : moved(own_steps(gain))};
  }
  return channels;
}

// One channel for all, if they have the same gain; else none.
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

// ---- steps

// The shift with which the largest product of `steps` has 15 bits.
int32_t shift_for(double largest, int32_t steps) {
  int exponent = 0;
  std::frexp(std::ldexp(largest, steps), &exponent);
  return kMultiplierBits - exponent;
}
bool is_shift(int32_t shift) { return shift >= 0 && shift <= kShiftMax; }
int16_t factor_of(double exact) {
  constexpr double kHalf = 0.5;
  return static_cast<int16_t>(std::clamp<double>(exact + kHalf, 1, INT16_MAX));
}

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

double largest_of(std::span<const Channel> channels) { return std::ranges::max(channels, {}, &Channel::gain).gain; }

// Expected part of all channels' outputs that differ, by the number of steps.
std::array<double, kStepsMax + 1> by_steps(std::span<const Channel> channels, Range range) {
  std::array<double, kStepsMax + 1> parts{};
  const auto [least, most] = std::ranges::minmax(channels, {}, &Channel::gain);
  for (int32_t steps = 0; steps <= kStepsMax; ++steps) {
    // Numbers beyond those of the channels themselves give the same as the nearest one.
    const bool is_beyond = steps < own_steps(most.gain) - 1 || (steps > own_steps(least.gain) + 1 && steps < kStepsMax);
    if (is_beyond) {
      parts[static_cast<size_t>(steps)] = std::numeric_limits<double>::infinity();
      continue;
    }
    const double one = std::ldexp(1, steps + shift_for(most.gain, steps)), by_chip = moved(steps);
    for (const Channel& c : channels) parts[static_cast<size_t>(steps)] += otherwise(c, range, by_chip, one);
    parts[static_cast<size_t>(steps)] /= static_cast<double>(channels.size());
  }
  return parts;
}
std::array<int32_t, 3> steps_that_seem_best(std::span<const Channel> channels, Range range) {
  const auto parts = by_steps(channels, range);
  std::array<int32_t, kStepsMax + 1> order{};
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int32_t steps) { return parts[static_cast<size_t>(steps)]; });
  return {order[0], order[1], order[2]};
}

// ---- sums at which outputs change

// Dividing numbers of 53 bits by a power of two is exact enough: a quotient that is not whole is far from a whole
// number.
int64_t ceil_of(int64_t value, int64_t by) {
  const double quotient = static_cast<double>(value) / static_cast<double>(by);
  const auto cut = static_cast<int64_t>(quotient);
  return cut + (quotient > static_cast<double>(cut) ? 1 : 0);
}

// The least number of steps that rounds to `output` or more, halves away from zero.
int64_t first_step(int64_t output, int32_t steps) {
  if (steps == 0) return output;
  return output * (int64_t{1} << steps) - (int64_t{1} << (steps - 1)) + (output <= 0 ? 1 : 0);
}
// For gains so small that the numbers above do not fit 64 bits: sums beyond those of any layer are clamped.
int64_t far_sum(int64_t output, double gain) {
  constexpr double kFarthest = 1e15;
  return static_cast<int64_t>(std::ceil(std::clamp((static_cast<double>(output) - 0.5) / gain, -kFarthest, kFarthest)));
}
int64_t first_sum(int64_t output, QuantizedMultiplier by) {
  if (by.multiplier == 0 || -by.shift > kStepsMax) return far_sum(output, std::ldexp(by.multiplier, by.shift - 31));
  const int64_t step = first_step(output, std::max(-by.shift, 0));
  return ceil_of(step * (int64_t{1} << 31) - (int64_t{1} << 30), int64_t{by.multiplier} << std::max(by.shift, 0));
}
// Rounded once, halves away from zero of the output with `zero` added. A slightly inexact gain must not move halves.
int64_t first_sum(int64_t output, double gain, int32_t zero) {
  constexpr double kNear = 1e-3;  // sums
  const double half = (static_cast<double>(output) - 0.5) / gain;
  return static_cast<int64_t>(output + zero > 0 ? std::ceil(half - kNear) : std::floor(half + kNear) + 1);
}
// On the chip: the multiplier's product is rounded to the nearest step, halves to even.
int64_t first_sum(int64_t output, int16_t factor, int32_t steps, int32_t shift) {
  const int64_t step = first_step(output, steps);
  if (shift == 0) return ceil_of(step, factor);
  if (shift > kExactShift) return far_sum(output, std::ldexp(factor, -steps - shift));
  return ceil_of(step * (int64_t{1} << shift) - (int64_t{1} << (shift - 1)) + (step & 1), factor);
}

struct Factor {
  int16_t value = 0;
  int32_t added = 0;     // to the sum
  double otherwise = 0;  // part of the outputs that differ
};

// The likely outputs of a channel.
class Changes {
 public:
  Changes(const Channel& c, Range range) : c_(c) {
    const QuantizedMultiplier by = quantize_multiplier(c.gain);
    constexpr double kFar = 3;  // spreads
    const auto end = [&](double value) {
      return static_cast<int32_t>(std::clamp<double>(value, range.first, range.last));
    };
    first_ = std::min(end(c.mean - kFar * c.spread), range.last - 1) + 1;
    const int32_t last = std::max(end(c.mean + kFar * c.spread), first_);
    count_ = static_cast<size_t>(last - first_ + 1);
    for (size_t i = 0; i < count_; ++i) {
      const int32_t output = first_ + static_cast<int32_t>(i);
      const double far = (output - c.mean) / std::max(c.spread, 1.0);
      sums_[i] = c.once ? first_sum(output, c.gain, *c.once) : first_sum(output, by);
      weights_[i] = 1 / (1 + far * far);
      weight_ += weights_[i];
    }
  }

  // The factor with nothing added, or with the median of the differences if that is better.
  Factor judge(int16_t factor, int32_t steps, int32_t shift) const {
    std::array<int64_t, kMost> at{};
    for (size_t i = 0; i < count_; ++i) at[i] = first_sum(first_ + static_cast<int64_t>(i), factor, steps, shift);
    const auto [from, weights] = differences(at);
    double below = 0;
    size_t place = 0;
    while (place + 1 < weights.size() && (below += weights[place]) * 2 < weight_) ++place;
    const int64_t wanted = from + static_cast<int64_t>(place);
    const Factor none{factor, 0, otherwise(at, 0)};
    if (wanted == 0 || none.otherwise == 0) return none;
    const Factor some{factor, static_cast<int32_t>(wanted), otherwise(at, wanted)};
    return some.otherwise < none.otherwise ? some : none;
  }

 private:
  static constexpr size_t kMost = 256, kDifferences = 65;
  // The part of the sums, by likelihood, that give another output.
  double otherwise(const std::array<int64_t, kMost>& at, int64_t added) const {
    double all = 0;
    if (c_.unit == 1) {
      for (size_t i = 0; i < count_; ++i) all += weights_[i] * static_cast<double>(std::abs(at[i] - added - sums_[i]));
    } else {
      for (size_t i = 0; i < count_; ++i)
        all += weights_[i] * static_cast<double>(std::abs(index_of(at[i] - added) - index_of(sums_[i])));
    }
    return all / weight_ * c_.gain * c_.unit;
  }
  // The likelihood of each difference, from the first one on. Differences far from that of one likely output are
  // clamped.
  std::pair<int64_t, std::array<double, kDifferences>> differences(const std::array<int64_t, kMost>& at) const {
    constexpr int64_t kLast = kDifferences - 1;
    std::array<double, kDifferences> even{}, odd{};  // two arrays, so that additions do not wait for each other
    const int64_t from = at[count_ / 2] - sums_[count_ / 2] - kLast / 2;
    for (size_t i = 0; i < count_; ++i)
      (i % 2 == 0 ? even : odd)[static_cast<size_t>(std::clamp<int64_t>(at[i] - sums_[i] - from, 0, kLast))] +=
          weights_[i];
    for (size_t i = 0; i < even.size(); ++i) even[i] += odd[i];
    return {from, even};
  }
  int64_t index_of(int64_t sum) const { return c_.unit == 1 ? sum : ceil_of(sum - c_.lowest, c_.unit); }

  const Channel& c_;
  int32_t first_ = 0;
  size_t count_ = 0;
  std::array<int64_t, kMost> sums_;
  std::array<double, kMost> weights_;
  double weight_ = 0;  // of all outputs
};

// A coarse multiplier is the nearest one, made exact in the middle of the possible sums within the limits. These are
// few, or the chip does not take the operation (scales() of rk3576_support.cpp).
Factor coarse_factor(const Channel& c, Range range, double exact) {
  const Factor nearest{factor_of(exact), 0, 0};
  const auto end = [&](int64_t sum) {
    return std::clamp<double>(static_cast<double>(sum), range.first / c.gain, range.last / c.gain);
  };
  const double middle = (end(c.lowest) + end(c.highest)) / 2, added = middle * (exact / nearest.value - 1);
  return {nearest.value, static_cast<int32_t>(std::clamp<double>(std::rint(added), INT32_MIN, INT32_MAX)), 0};
}

Factor factor_for(const Channel& c, Range range, const Changes& changes, int32_t steps, int32_t shift) {
  const double exact = std::ldexp(c.gain, steps + shift);
  const int16_t nearest = factor_of(exact);
  if (nearest < kFine) return coarse_factor(c, range, exact);
  const Factor one = changes.judge(nearest, steps, shift);
  const int32_t second = exact > nearest ? nearest + 1 : nearest - 1;
  if (exact == nearest || second > INT16_MAX || second < 2 * kFine) return one;
  const Factor other = changes.judge(static_cast<int16_t>(second), steps, shift);
  return other.otherwise < one.otherwise ? other : one;
}

// The best of three likely numbers of steps, tried on some of the channels.
int32_t steps_for(std::span<const Channel> channels, Range range) {
  constexpr size_t kSome = 16;
  const std::array<int32_t, 3> seem_best = steps_that_seem_best(channels, range);
  std::array<double, 3> otherwise{};
  for (size_t c = 0; c < channels.size(); c += ceil_div(channels.size(), kSome)) {
    const Changes changes(channels[c], range);
    for (size_t i = 0; i < seem_best.size(); ++i) {
      const int32_t shift = shift_for(largest_of(channels), seem_best[i]);
      if (!is_shift(shift)) {
        otherwise[i] = std::numeric_limits<double>::infinity();
        continue;
      }
      otherwise[i] += factor_for(channels[c], range, changes, seem_best[i], shift).otherwise;
    }
  }
  return seem_best[static_cast<size_t>(std::ranges::min_element(otherwise) - otherwise.begin())];
}

Error too_large(double gain) {
  return error(ErrorCode::unsupported, "a gain of {:g} does not fit the chip's multiplier", gain);
}

// Multipliers of 15 bits make products of steps of the output divided by a power of two.
Result<void> set_steps(std::span<const float> products, float out_scale, std::optional<double> limit, Conv& conv) {
  std::vector<Channel> channels = likely_channels(products, out_scale, conv);
  if (const auto one = common(channels)) channels = {*one};
  const Range range = range_of(conv);
  const int32_t steps = steps_for(channels, range), shift = shift_for(largest_of(channels), steps);
  if (!is_shift(shift)) return too_large(largest_of(channels));
  std::vector<Factor> factors;
  for (const Channel& c : channels) factors.push_back(factor_for(c, range, Changes(c, range), steps, shift));
  factors.resize(products.size(), factors[0]);
  conv.multipliers.clear();
  for (size_t c = 0; c < factors.size(); ++c) {
    conv.multipliers.push_back(factors[c].value);
    if (c >= conv.bias.size()) continue;
    const int64_t bias = int64_t{conv.bias[c]} + factors[c].added;
    if (bias == static_cast<int32_t>(bias)) conv.bias[c] = static_cast<int32_t>(bias);
  }
  conv.multiplier_shift = shift;
  conv.out_gain = power_of_two(steps);
  conv.halves_away = true;
  if (limit) conv.clamp.limit = limit_of(std::ldexp(*limit / out_scale, steps));
  return {};
}

}  // namespace

Result<void> set_scales(std::span<const float> products, float out_scale, std::optional<double> limit, bool first_units,
                        Conv& conv) {
  if (!first_units) return set_steps(products, out_scale, limit, conv);
  const double largest = std::ranges::max(products);
  conv.multipliers.clear();
  for (const float product : products)
    conv.multipliers.push_back(
        static_cast<int16_t>(std::max<int64_t>(std::llrint(std::ldexp(product / largest, kOneMultiplierLog2)), 1)));
  conv.multiplier_shift = kOneMultiplierLog2;
  conv.out_gain = nearest_gain(largest / out_scale);
  if (!is_valid(conv.out_gain)) return too_large(largest / out_scale);
  if (limit) conv.clamp.limit = limit_of(std::rint(*limit / products[0]));
  return {};
}

// Ends of groups of channels, each with its own shift and steps: as few groups as keep differing outputs rare.
std::vector<int32_t> ends_of_parts(std::span<const float> products, float out_scale, const Conv& conv) {
  constexpr double kRare = 0.003;
  const std::vector<Channel> channels = likely_channels(products, out_scale, conv);
  const auto group = static_cast<size_t>(conv.depthwise ? kDepthwiseGroup : kKernelGroup);
  std::vector<int32_t> ends;
  size_t first = 0;
  for (size_t end = group; end < channels.size(); end += group) {
    const size_t next = std::min(end + group, channels.size());
    const auto together = std::span(channels).subspan(first, next - first);
    if (std::ranges::min(by_steps(together, range_of(conv))) <= kRare) continue;
    ends.push_back(static_cast<int32_t>(end));
    first = end;
  }
  ends.push_back(static_cast<int32_t>(channels.size()));
  return ends;
}

// Products are as fine as 32 bits allow for a byte.
Result<void> set_fine_scale(double gain, std::optional<double> limit, double out_scale, Conv& conv) {
  int exponent = 0;
  std::frexp(gain, &exponent);
  const int32_t bits = kMultiplierBits - exponent, steps = std::min(bits, kStepsMax);
  if (bits < 0 || bits - steps > kShiftMax) return too_large(gain);
  const double factor = std::min<double>(std::rint(std::ldexp(gain, bits)), INT16_MAX);
  conv.multipliers.assign(static_cast<size_t>(conv.out.channels), static_cast<int16_t>(factor));
  conv.multiplier_shift = bits - steps;
  conv.out_gain = power_of_two(steps);
  conv.halves_away = true;
  if (limit) conv.clamp.limit = limit_of(std::ldexp(*limit / out_scale, steps));
  return {};
}

}  // namespace skillet::npus::rockchip::rk3576
