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
class OneScale {
 public:
  HWY_INLINE explicit OneScale(QuantizedMultiplier by) : left_(by.shift), right_(-by.shift) {
    const D d;
    multiplier_ = hn::Set(d, by.multiplier);
    mask_ = hn::Set(d, right_ > 0 ? static_cast<int32_t>((int64_t{1} << right_) - 1) : 0);
    threshold_ = hn::ShiftRight<1>(mask_);
  }
  HWY_INLINE hn::Vec<D> apply(hn::Vec<D> x) const {
    if (left_ > 0) x = hn::ShiftLeftSame(x, left_);
    return divide(high_mul(D(), x, multiplier_, multiplier_));
  }
  // The second half: what has been multiplied is shifted to the right. Halves away from zero: one less is added to
  // what is negative.
  HWY_INLINE hn::Vec<D> divide(hn::Vec<D> high) const {
    if (right_ <= 0) return high;
    const D d;
    const auto threshold = hn::Sub(threshold_, hn::BroadcastSignBit(high));
    const auto round_up = hn::VecFromMask(d, hn::Gt(hn::And(high, mask_), threshold));
    return hn::Sub(hn::ShiftRightSame(high, right_), round_up);
  }

 private:
  hn::Vec<D> multiplier_, mask_, threshold_;
  int left_ = 0, right_ = 0;
};

// The same with a bias, a multiplier and a shift for each lane, which are loaded once for many sums.
template <class D>
class ChannelScale {
 public:
  // Pointers to as many as there are lanes; `bias` may be null.
  HWY_INLINE ChannelScale(const int32_t* bias, const int32_t* multiplier, const int32_t* shift) {
    const D d;
    const hn::RepartitionToWide<D> d64;
    const hn::RebindToUnsigned<decltype(d64)> du64;
    const auto shifts = hn::LoadU(d, shift), one = hn::Set(d, 1);
    bias_ = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias);
    even_ = hn::LoadU(d, multiplier);
    odd_ = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(du64, even_)));
    left_ = hn::Max(shifts, hn::Zero(d));
    shifts_left_ = !hn::AllTrue(d, hn::Eq(left_, hn::Zero(d)));
    right_ = hn::Max(hn::Neg(shifts), hn::Zero(d));
    mask_ = hn::Sub(hn::Shl(one, right_), one);
    threshold_ = hn::ShiftRight<1>(mask_);
  }
  HWY_INLINE hn::Vec<D> apply(hn::Vec<D> sum) const {
    const D d;
    auto x = hn::Add(sum, bias_);
    if (shifts_left_) x = hn::Shl(x, left_);
    const auto high = high_mul(d, x, even_, odd_);
    // Halves away from zero: one less is added to what is negative.
    const auto threshold = hn::Sub(threshold_, hn::BroadcastSignBit(high));
    const auto round_up = hn::VecFromMask(d, hn::Gt(hn::And(high, mask_), threshold));
    return hn::Sub(hn::Shr(high, right_), round_up);
  }

 private:
  hn::Vec<D> bias_, even_, odd_, left_, right_, mask_, threshold_;
  bool shifts_left_ = false;
};

}  // namespace skillet::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
