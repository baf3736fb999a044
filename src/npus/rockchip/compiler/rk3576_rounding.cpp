// Multipliers, shifts and biases with which as few outputs as possible differ from TensorFlow Lite's.
// TensorFlow Lite rounds a product twice: to steps of 2^-own, where the gain is between 1/2 and 1 of a step, and then
// to whole numbers, halves away from zero. The chip does the same with steps of 2^-k, one k for all channels, and
// multipliers of 15 bits. A result differs where an output changes at another sum. The number added to a channel's sums
// makes most of these changes equal TensorFlow Lite's, among the likely sums.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "base/fixed_point.h"
#include "base/int_math.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/rk3576.h"
#include "npus/rockchip/compiler/rk3576_likely.h"
#include "simd/likely_changes.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

constexpr int32_t kOneMultiplierLog2 = 14;
constexpr int32_t kExactShift = 32;  // outputs, in steps, leave as many bits

int32_t limit_of(double value) {
  return static_cast<int32_t>(std::min<double>(value, std::numeric_limits<int32_t>::max()));
}

// ---- steps

bool is_shift(int32_t shift) { return shift >= 0 && shift <= kShiftMax; }
double largest_of(std::span<const Channel> channels) { return std::ranges::max(channels, {}, &Channel::gain).gain; }

std::array<int32_t, 3> steps_that_seem_best(std::span<const Channel> channels, Range range) {
  const auto parts = BySteps(channels, range).of(0, channels.size());
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

// The outputs to which likely sums change.
struct Outputs {
  int32_t first = 0;
  size_t count = 0;

  Outputs(const Channel& c, Range range) {
    constexpr double kFar = 3;  // spreads
    const auto end = [&](double value) {
      return static_cast<int32_t>(std::clamp<double>(value, range.first, range.last));
    };
    first = std::min(end(c.mean - kFar * c.spread), range.last - 1) + 1;
    count = static_cast<size_t>(std::max(end(c.mean + kFar * c.spread), first) - first + 1);
  }
};

// The likely outputs of a channel.
class Changes {
 public:
  Changes(const Channel& c, Range range) : c_(c) {
    const QuantizedMultiplier by = quantize_multiplier(c.gain);
    const Outputs outputs(c, range);
    first_ = outputs.first, count_ = outputs.count;
    for (size_t i = 0; i < count_; ++i) {
      const int32_t output = first_ + static_cast<int32_t>(i);
      const double far = (output - c.mean) / std::max(c.spread, 1.0);
      sums_[i] = c.once ? first_sum(output, c.gain, *c.once) : first_sum(output, by);
      weights_[i] = 1 / (1 + far * far);
      weight_ += weights_[i];
    }
  }

  // The factor with nothing added, or with the median of the differences if that is better.
  Factor compare(int16_t factor, int32_t steps, int32_t shift) const {
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

// A channel's nearest factor, and the second nearest if it may be better; else 0.
struct Candidates {
  int16_t nearest = 0, second = 0;

  explicit Candidates(double exact) : nearest(factor_of(exact)) {
    const int32_t other = exact > nearest ? nearest + 1 : nearest - 1;
    if (exact != nearest && other <= INT16_MAX && other >= 2 * kFine) second = static_cast<int16_t>(other);
  }
};

Factor better_of(const Factor& one, const Factor& other) { return other.otherwise < one.otherwise ? other : one; }

Factor factor_for(const Channel& c, Range range, int32_t steps, int32_t shift) {
  const double exact = std::ldexp(c.gain, steps + shift);
  const Candidates candidates(exact);
  if (candidates.nearest < kFine) return coarse_factor(c, range, exact);
  const Changes changes(c, range);
  const Factor one = changes.compare(candidates.nearest, steps, shift);
  return candidates.second == 0 ? one : better_of(one, changes.compare(candidates.second, steps, shift));
}

// factor_for() of several channels at once.
class Several {
 public:
  Several(Range range, int32_t steps, int32_t shift) : range_(range), by_{steps, shift} {}

  // False: it needs factor_for().
  static bool takes(const Channel& c, int32_t steps, int32_t shift) {
    const QuantizedMultiplier by = quantize_multiplier(c.gain);
    return !c.once && c.unit == 1 && by.multiplier != 0 && -by.shift <= kStepsMax && shift <= kExactShift &&
           factor_of(std::ldexp(c.gain, steps + shift)) >= kFine;
  }

  // `out`: one for each channel.
  void factors_for(std::span<const Channel* const> channels, std::span<Factor> out) {
    channels_ = {};
    channels_.spread.fill(1), channels_.divisor.fill(1);
    for (size_t i = 0; i < channels.size(); ++i) take(i, *channels[i]);
    weights_ = likely_changes::weigh(channels_, *work_);
    compare(channels, &Candidates::nearest, out);
    std::array<Factor, likely_changes::kChannels> others;
    compare(channels, &Candidates::second, others);
    for (size_t i = 0; i < channels.size(); ++i)
      if (others[i].value != 0) out[i] = better_of(out[i], others[i]);
  }

 private:
  double exact(const Channel& c) const { return std::ldexp(c.gain, by_.steps + by_.shift); }

  void take(size_t i, const Channel& c) {
    const QuantizedMultiplier by = quantize_multiplier(c.gain);
    const Outputs outputs(c, range_);
    const int32_t steps = std::max(-by.shift, 0);
    channels_.first[i] = outputs.first, channels_.count[i] = static_cast<double>(outputs.count);
    channels_.mean[i] = c.mean, channels_.spread[i] = std::max(c.spread, 1.0);
    channels_.power[i] = std::ldexp(1, steps);
    channels_.half[i] = steps == 0 ? 0 : std::ldexp(1, steps - 1), channels_.below[i] = steps == 0 ? 0 : 1;
    channels_.divisor[i] = std::ldexp(by.multiplier, std::max(by.shift, 0));
  }

  // Changes::compare().
  void compare(std::span<const Channel* const> channels, int16_t Candidates::*which, std::span<Factor> out) {
    likely_changes::PerChannel factors, wanted{};
    factors.fill(1);
    for (size_t i = 0; i < channels.size(); ++i) {
      out[i] = {Candidates(exact(*channels[i])).*which, 0, 0};
      if (out[i].value != 0) factors[i] = out[i].value;
    }
    likely_changes::compare(channels_, by_, factors, *work_, *compared_);
    for (size_t i = 0; i < channels.size(); ++i) wanted[i] = median(i);
    const likely_changes::PerChannel some = likely_changes::distance_with(wanted, *work_);
    for (size_t i = 0; i < channels.size(); ++i) {
      if (out[i].value == 0) continue;
      const auto part = [&](double distance) { return distance / weights_[i] * channels[i]->gain * channels[i]->unit; };
      out[i].otherwise = part(compared_->distance[i]);
      if (wanted[i] == 0 || out[i].otherwise == 0 || part(some[i]) >= out[i].otherwise) continue;
      out[i].added = static_cast<int32_t>(wanted[i]);
      out[i].otherwise = part(some[i]);
    }
  }

  double median(size_t i) const {
    const auto &even = compared_->weights[0][i], &odd = compared_->weights[1][i];
    double below = 0;
    size_t place = 0;
    while (place + 1 < even.size() && (below += even[place] + odd[place]) * 2 < weights_[i]) ++place;
    return compared_->lowest[i] + static_cast<double>(place);
  }

  Range range_;
  likely_changes::Steps by_;
  likely_changes::Channels channels_;
  likely_changes::PerChannel weights_{};
  std::unique_ptr<likely_changes::Work> work_ = std::make_unique<likely_changes::Work>();
  std::unique_ptr<likely_changes::Compared> compared_ = std::make_unique<likely_changes::Compared>();
};

std::vector<Factor> factors_for(std::span<const Channel> channels, Range range, int32_t steps, int32_t shift) {
  std::vector<Factor> out(channels.size());
  Several several(range, steps, shift);
  std::vector<const Channel*> together;
  std::vector<size_t> places;
  const auto compare = [&] {
    std::array<Factor, likely_changes::kChannels> factors;
    several.factors_for(together, factors);
    for (size_t i = 0; i < places.size(); ++i) out[places[i]] = factors[i];
    together.clear(), places.clear();
  };
  for (size_t c = 0; c < channels.size(); ++c) {
    if (!Several::takes(channels[c], steps, shift)) {
      out[c] = factor_for(channels[c], range, steps, shift);
      continue;
    }
    together.push_back(&channels[c]), places.push_back(c);
    if (together.size() == likely_changes::kChannels) compare();
  }
  if (!together.empty()) compare();
  return out;
}

// The best of three likely numbers of steps, tried on some of the channels.
int32_t steps_for(std::span<const Channel> channels, Range range) {
  constexpr size_t kSome = 16;
  const std::array<int32_t, 3> seem_best = steps_that_seem_best(channels, range);
  std::vector<Channel> some;
  for (size_t c = 0; c < channels.size(); c += ceil_div(channels.size(), kSome)) some.push_back(channels[c]);
  std::array<double, 3> otherwise{};
  for (size_t i = 0; i < seem_best.size(); ++i) {
    const int32_t shift = shift_for(largest_of(channels), seem_best[i]);
    if (!is_shift(shift)) {
      otherwise[i] = std::numeric_limits<double>::infinity();
      continue;
    }
    for (const Factor& one : factors_for(some, range, seem_best[i], shift)) otherwise[i] += one.otherwise;
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
  std::vector<Factor> factors = factors_for(channels, range, steps, shift);
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
  BySteps by_steps(channels, range_of(conv));
  std::vector<int32_t> ends;
  size_t first = 0;
  for (size_t end = group; end < channels.size(); end += group) {
    const size_t next = std::min(end + group, channels.size());
    if (std::ranges::min(by_steps.of(first, next)) <= kRare) continue;
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
