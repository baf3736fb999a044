// Processes one block (vector) of channels after the other: its weights and multipliers stay in registers or the
// first-level cache for a row of pixels. Compiled once per instruction set, chosen at run time.
#include "simd/depthwise.h"

#include <algorithm>

#include "base/check.h"
#include "base/fixed_point.h"

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/depthwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "simd/fixed_point-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace skillet::depthwise {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
// x86 without SSE4: the plain loops.

void Pack(const int16_t* weights, const gemm::Requantize& how, Filter& f) {
  f.block = 1;
  f.weights.assign(weights, weights + f.taps * f.channels);
  f.bias.assign(how.bias, how.bias + f.channels);
  f.multiplier.assign(how.multiplier, how.multiplier + f.channels);
  f.shift.assign(how.shift, how.shift + f.channels);
}

template <typename T>
void run_any(const Filter& f, const int16_t* const* taps, size_t pixels, T* out) {
  for (size_t p = 0; p < pixels; ++p) {
    for (size_t i = 0; i < f.channels; ++i) {
      int32_t sum = f.bias[i];
      for (size_t t = 0; t < f.taps; ++t)
        sum = wrapping_add(sum, taps[t][p * f.step + i] * f.weights[t * f.channels + i]);
      const int32_t scaled = multiply_by_quantized_multiplier(sum, {f.multiplier[i], f.shift[i]});
      out[p * f.channels + i] =
          static_cast<T>(std::clamp(wrapping_add(scaled, f.output_zero_point), f.clamp_min, f.clamp_max));
    }
  }
}

#else
namespace hn = hwy::HWY_NAMESPACE;
using D16 = hn::CappedTag<int16_t, 32>;
using D32 = hn::RepartitionToWide<D16>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using Scale = skillet::HWY_NAMESPACE::ChannelScale<D32>;

// x86 multiplies pairs of 16-bit numbers and adds the two products: a pair holds two taps. ARM multiplies the lower and
// the upper half of a vector.
constexpr bool kPairs = HWY_ARCH_X86 != 0;
constexpr size_t kTapsAtOnce = kPairs ? 2 : 1;
constexpr size_t kHalf = 4;  // channels of half a vector of 16 bytes

size_t tap_groups(const Filter& f) { return (f.taps + kTapsAtOnce - 1) / kTapsAtOnce; }
size_t group_elems(const Filter& f) { return f.block * kTapsAtOnce; }
// The last block is moved back so that it fits.
size_t first_channel(const Filter& f, size_t block) {
  return f.channels < f.block ? 0 : std::min(block * f.block, f.channels - f.block);
}
// Element whose sum is in lane i of the lower halves or, from f.block / 2 on, of the upper halves.
size_t element_of_lane(const Filter& f, size_t i) {
  const size_t lanes = f.block / 2, upper = i / lanes, lane = i % lanes;
  return lane / kHalf * 2 * kHalf + upper * kHalf + lane % kHalf;
}

void pack_block(const int16_t* weights, const gemm::Requantize& how, size_t first, Filter& f) {
  const size_t used = f.channels * f.pixels;
  const auto weight = [&](size_t tap, size_t element) {
    return tap < f.taps && element < used ? weights[tap * f.channels + element % f.channels] : int16_t{0};
  };
  for (size_t t = 0; t < f.taps; t += kTapsAtOnce) {
    for (size_t i = 0; i < group_elems(f); ++i) {
      const size_t element = first + (kPairs ? element_of_lane(f, i / 2) : i);
      f.weights.push_back(weight(kPairs ? t + i % 2 : t, element));
    }
  }
  for (size_t i = 0; i < f.block; ++i) {
    const size_t element = first + element_of_lane(f, i), channel = element % f.channels;
    f.bias.push_back(element < used ? how.bias[channel] : 0);
    f.multiplier.push_back(element < used ? how.multiplier[channel] : 0);
    f.shift.push_back(element < used ? how.shift[channel] : 0);
  }
}

void Pack(const int16_t* weights, const gemm::Requantize& how, Filter& f) {
  f.block = hn::Lanes(D16());
  // Several adjacent pixels fit a vector.
  if (f.step == f.channels) f.pixels = std::max<size_t>(f.block / f.channels, 1);
  for (size_t b = 0; b * f.block < f.channels; ++b) pack_block(weights, how, first_channel(f, b), f);
}

struct Block {
  const int16_t* const* taps;
  size_t groups, first;
  const int16_t* weights;
  size_t pixels;
};

// The sums of the lower and the upper halves of a pixel's channels; kGroups 0: the number is only known at run time.
template <size_t kGroups>
HWY_INLINE void sum_pixel(const Block& b, size_t at, V32& low, V32& high) {
  const D16 d16;
  const D32 d32;
  low = high = hn::Zero(d32);
  auto unused = hn::Zero(d32);
  const size_t groups = kGroups == 0 ? b.groups : kGroups;
  for (size_t g = 0; g < groups; ++g) {
    const auto x = hn::LoadU(d16, b.taps[g * kTapsAtOnce] + at);
    const int16_t* weights = b.weights + g * kTapsAtOnce * hn::Lanes(d16);
    if constexpr (kPairs) {
      const auto y = hn::LoadU(d16, b.taps[g * 2 + 1] + at);
      const auto lower = hn::LoadU(d16, weights), upper = hn::LoadU(d16, weights + hn::Lanes(d16));
      low = hn::ReorderWidenMulAccumulate(d32, hn::InterleaveLower(d16, x, y), lower, low, unused);
      high = hn::ReorderWidenMulAccumulate(d32, hn::InterleaveUpper(d16, x, y), upper, high, unused);
    } else {
      low = hn::ReorderWidenMulAccumulate(d32, x, hn::LoadU(d16, weights), low, high);
    }
  }
}

template <size_t kGroups, typename T>
HWY_INLINE void run_block(const Filter& f, const Block& b, const Scale& lower, const Scale& upper, T* out) {
  const D16 d16;
  const hn::Rebind<T, D16> d8;
  const size_t lanes = hn::Lanes(d16);
  const auto zero_point = hn::Set(D32(), f.output_zero_point);
  const auto least = hn::Set(d8, static_cast<T>(f.clamp_min)), most = hn::Set(d8, static_cast<T>(f.clamp_max));
  const size_t channels = f.channels, step = f.step, at_once = f.pixels;
  for (size_t p = 0; p < b.pixels; p += at_once) {
    V32 low, high;
    sum_pixel<kGroups>(b, p * step + b.first, low, high);
    const auto words =
        hn::ReorderDemote2To(d16, hn::Add(lower.apply(low), zero_point), hn::Add(upper.apply(high), zero_point));
    const auto bytes = hn::Min(hn::Max(hn::DemoteTo(d8, words), least), most);
    T* to = out + p * channels + b.first;
    // Elements written beyond a pixel are overwritten with the next pixel.
    const size_t left = (b.pixels - p) * channels - b.first;
    if (left >= lanes) {
      hn::StoreU(bytes, d8, to);
    } else {
      HWY_ALIGN T last[32];
      hn::Store(bytes, d8, last);
      std::copy_n(last, left, to);
    }
  }
}

template <typename T>
HWY_INLINE void run_any(const Filter& f, const int16_t* const* taps, size_t pixels, T* out) {
  const size_t lanes = hn::Lanes(D32());
  SK_CHECK(f.block == 2 * lanes);
  Block b{.taps = taps, .groups = tap_groups(f), .first = 0, .weights = nullptr, .pixels = pixels};
  for (size_t n = 0; n * f.block < f.channels; ++n) {
    b.first = first_channel(f, n);
    b.weights = f.weights.data() + n * b.groups * group_elems(f);
    const size_t at = n * f.block;
    const Scale lower(f.bias.data() + at, f.multiplier.data() + at, f.shift.data() + at);
    const Scale upper(f.bias.data() + at + lanes, f.multiplier.data() + at + lanes, f.shift.data() + at + lanes);
    constexpr size_t kNineTaps = (9 + kTapsAtOnce - 1) / kTapsAtOnce;
    b.groups == kNineTaps ? run_block<kNineTaps>(f, b, lower, upper, out) : run_block<0>(f, b, lower, upper, out);
  }
}
#endif  // HWY_SCALAR || HWY_EMU128

void RunU8(const Filter& f, const int16_t* const* taps, size_t pixels, uint8_t* out) { run_any(f, taps, pixels, out); }
void RunI8(const Filter& f, const int16_t* const* taps, size_t pixels, int8_t* out) { run_any(f, taps, pixels, out); }

}  // namespace HWY_NAMESPACE
}  // namespace skillet::depthwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skillet::depthwise {

HWY_EXPORT(Pack);
HWY_EXPORT(RunU8);
HWY_EXPORT(RunI8);

Filter pack(const int16_t* weights, size_t taps, size_t channels, size_t step, const gemm::Requantize& how) {
  Filter f{.taps = taps,
           .channels = channels,
           .step = step,
           .output_zero_point = how.output_zero_point,
           .clamp_min = how.clamp_min,
           .clamp_max = how.clamp_max};
  HWY_DYNAMIC_DISPATCH(Pack)(weights, how, f);
  return f;
}
void run(const Filter& f, const int16_t* const* taps, size_t pixels, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(RunU8)(f, taps, pixels, out);
}
void run(const Filter& f, const int16_t* const* taps, size_t pixels, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(RunI8)(f, taps, pixels, out);
}

}  // namespace skillet::depthwise
#endif  // HWY_ONCE
