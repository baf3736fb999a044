// base/fixed_point.h on vectors of 32-bit lanes, once for each instruction set (so no include guard).
// Included by sources that are compiled once per instruction set, after hwy/highway.h. Must not know: what is computed.
#if defined(SKILLET_FIXED_POINT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SKILLET_FIXED_POINT_INL_H
#undef SKILLET_FIXED_POINT_INL_H
#else
#define SKILLET_FIXED_POINT_INL_H
#endif

#include "base/fixed_point.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skillet::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// saturating_rounding_doubling_high_mul without the saturation: multipliers are >= 0.
// The wanted bits 31..62 of a sum in 64 bits are the same for a logical and an arithmetic shift.
template <class D>
HWY_INLINE hn::Vec<D> high_mul(D d32, hn::Vec<D> x, hn::Vec<D> even_multiplier, hn::Vec<D> odd_multiplier) {
  const hn::RepartitionToWide<D> d64;
  const hn::RebindToUnsigned<decltype(d64)> du64;
  const auto nudge = hn::Set(d64, int64_t{1} << 30);
  const auto odd_x = hn::BitCast(d32, hn::ShiftRight<32>(hn::BitCast(du64, x)));
  const auto even = hn::Add(hn::MulEven(x, even_multiplier), nudge);
  const auto odd = hn::Add(hn::MulEven(odd_x, odd_multiplier), nudge);
  const auto even_bits = hn::BitCast(d32, hn::ShiftRight<31>(hn::BitCast(du64, even)));
  const auto odd_bits = hn::BitCast(d32, hn::ShiftLeft<1>(hn::BitCast(du64, odd)));
  return hn::OddEven(odd_bits, even_bits);
}

// multiply_by_quantized_multiplier of one multiplier, lane by lane.
template <class D>
HWY_INLINE hn::Vec<D> scale_by(D d32, hn::Vec<D> x, QuantizedMultiplier by) {
  const auto multiplier = hn::Set(d32, by.multiplier);
  if (by.shift > 0) x = hn::ShiftLeftSame(x, by.shift);
  const auto high = high_mul(d32, x, multiplier, multiplier);
  if (by.shift >= 0) return high;
  // Halves away from zero: one less is added to what is negative.
  const int right = -by.shift;
  const auto mask = hn::Set(d32, static_cast<int32_t>((int64_t{1} << right) - 1));
  const auto threshold = hn::Sub(hn::ShiftRight<1>(mask), hn::BroadcastSignBit(high));
  const auto round_up = hn::VecFromMask(d32, hn::Gt(hn::And(high, mask), threshold));
  return hn::Sub(hn::ShiftRightSame(high, right), round_up);
}

}  // namespace skillet::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
