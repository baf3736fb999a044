// Compiled once per instruction set, chosen at run time.
#include "simd/likely_changes.h"

#include <algorithm>
#include <cmath>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/likely_changes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skillet::likely_changes {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<double, kChannels>;
using V = hn::Vec<Tag>;
constexpr Tag kTag;

V all(double value) { return hn::Set(kTag, value); }
V of(const PerChannel& values, size_t channel) { return hn::LoadU(kTag, values.data() + channel); }
V if_not_above_zero(V output, V value) { return hn::IfThenElseZero(hn::Le(output, hn::Zero(kTag)), value); }

// Some of the channels: as many as a vector holds.
struct First {
  V power, half, below, divisor;
  First(const Channels& c, size_t channel)
      : power(of(c.power, channel)),
        half(of(c.half, channel)),
        below(of(c.below, channel)),
        divisor(of(c.divisor, channel)) {}
  V sum(V output) const {
    const V step = hn::Add(hn::Sub(hn::Mul(output, power), half), if_not_above_zero(output, below));
    return hn::Ceil(hn::Div(hn::Sub(hn::Mul(step, all(0x1p31)), all(0x1p30)), divisor));
  }
};

struct Second {
  V power, half, below, scale, less, odd_below, factor;
  V odd[2];  // added at even and odd places
  Second(const Channels& c, const Steps& s, const PerChannel& factors, size_t channel)
      : power(all(std::ldexp(1, s.steps))),
        half(all(s.steps == 0 ? 0 : std::ldexp(1, s.steps - 1))),
        below(all(s.steps == 0 ? 0 : 1)),
        scale(all(std::ldexp(1, s.shift))),
        less(all(s.shift == 0 ? 0 : std::ldexp(1, s.shift - 1))),
        odd_below(all(s.shift == 0 || s.steps == 0 ? 0
                      : s.steps == 1               ? -1
                                                   : 1)),
        factor(of(factors, channel)) {
    const V first = of(c.first, channel), two = all(2);
    const V is_odd = hn::Sub(first, hn::Mul(two, hn::Floor(hn::Div(first, two))));
    const double above = s.steps == 1 ? 1 : 0;
    odd[0] = s.shift == 0 ? hn::Zero(kTag) : s.steps == 0 ? is_odd : all(above);
    odd[1] = s.shift == 0 ? hn::Zero(kTag) : s.steps == 0 ? hn::Sub(all(1), is_odd) : all(above);
  }
  V sum(V output, V odd_here) const {
    const V step = hn::Add(hn::Sub(hn::Mul(output, power), half), if_not_above_zero(output, below));
    const V is_odd = hn::Add(odd_here, if_not_above_zero(output, odd_below));
    return hn::Ceil(hn::Div(hn::Add(hn::Sub(hn::Mul(step, scale), less), is_odd), factor));
  }
};

void Weigh(const Channels& c, Work& work, PerChannel& total) {
  for (size_t channel = 0; channel < kChannels; channel += hn::Lanes(kTag)) {
    const First way(c, channel);
    const V first = of(c.first, channel), count = of(c.count, channel);
    const V mean = of(c.mean, channel), spread = of(c.spread, channel);
    V sum = hn::Zero(kTag);
    for (size_t i = 0; i < work.outputs; ++i) {
      const V place = all(static_cast<double>(i)), output = hn::Add(first, place);
      const V far = hn::Div(hn::Sub(output, mean), spread);
      const V weight = hn::IfThenElseZero(hn::Lt(place, count), hn::Div(all(1), hn::Add(all(1), hn::Mul(far, far))));
      sum = hn::Add(sum, weight);
      hn::Store(weight, kTag, work.weights + i * kChannels + channel);
      hn::Store(way.sum(output), kTag, work.sums + i * kChannels + channel);
    }
    hn::StoreU(sum, kTag, total.data() + channel);
  }
}

void Compare(const Channels& c, const Steps& steps, const PerChannel& factors, Work& work, Compared& out) {
  for (size_t channel = 0; channel < kChannels; channel += hn::Lanes(kTag)) {
    const First way(c, channel);
    const Second other(c, steps, factors, channel);
    const V first = of(c.first, channel), half_count = hn::Floor(hn::Mul(of(c.count, channel), all(0.5)));
    const V is_odd_place = hn::Sub(half_count, hn::Mul(all(2), hn::Floor(hn::Mul(half_count, all(0.5)))));
    const V in_middle = hn::Add(first, half_count);
    const V odd = hn::IfThenElse(hn::Eq(is_odd_place, hn::Zero(kTag)), other.odd[0], other.odd[1]);
    const V last = all(kDifferences - 1);
    const V lowest = hn::Sub(hn::Sub(other.sum(in_middle, odd), way.sum(in_middle)), all(kDifferences / 2));
    hn::StoreU(lowest, kTag, out.lowest.data() + channel);
    V distance = hn::Zero(kTag);
    for (size_t i = 0; i < work.outputs; ++i) {
      const V output = hn::Add(first, all(static_cast<double>(i)));
      const double* const weights = work.weights + i * kChannels + channel;
      const V apart = hn::Sub(other.sum(output, other.odd[i % 2]), hn::Load(kTag, work.sums + i * kChannels + channel));
      hn::Store(apart, kTag, work.apart + i * kChannels + channel);
      distance = hn::Add(distance, hn::Mul(hn::Load(kTag, weights), hn::Abs(apart)));
      const V place = hn::Min(hn::Max(hn::Sub(apart, lowest), hn::Zero(kTag)), last);
      alignas(64) int32_t places[kChannels];
      hn::Store(hn::DemoteTo(hn::Rebind<int32_t, Tag>(), place), hn::Rebind<int32_t, Tag>(), places);
      for (size_t k = 0; k < hn::Lanes(kTag); ++k)
        out.weights[i % 2][channel + k][static_cast<size_t>(places[k])] += weights[k];
    }
    hn::StoreU(distance, kTag, out.distance.data() + channel);
  }
}

void DistanceWith(const PerChannel& added, const Work& work, PerChannel& out) {
  for (size_t channel = 0; channel < kChannels; channel += hn::Lanes(kTag)) {
    const V less = of(added, channel);
    V distance = hn::Zero(kTag);
    for (size_t i = 0; i < work.outputs; ++i) {
      const V apart = hn::Sub(hn::Load(kTag, work.apart + i * kChannels + channel), less);
      distance = hn::Add(distance, hn::Mul(hn::Load(kTag, work.weights + i * kChannels + channel), hn::Abs(apart)));
    }
    hn::StoreU(distance, kTag, out.data() + channel);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace skillet::likely_changes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skillet::likely_changes {

HWY_EXPORT(Weigh);
HWY_EXPORT(Compare);
HWY_EXPORT(DistanceWith);

PerChannel weigh(const Channels& channels, Work& work) {
  work.outputs = static_cast<size_t>(*std::max_element(channels.count.begin(), channels.count.end()));
  PerChannel total{};
  HWY_DYNAMIC_DISPATCH(Weigh)(channels, work, total);
  return total;
}

void compare(const Channels& channels, const Steps& steps, const PerChannel& factors, Work& work, Compared& out) {
  out = {};
  HWY_DYNAMIC_DISPATCH(Compare)(channels, steps, factors, work, out);
}

PerChannel distance_with(const PerChannel& added, const Work& work) {
  PerChannel out{};
  HWY_DYNAMIC_DISPATCH(DistanceWith)(added, work, out);
  return out;
}

}  // namespace skillet::likely_changes
#endif
