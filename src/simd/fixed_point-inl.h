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
    multiplier_ = hn::Set(D(), by.multiplier);
  }
  HWY_INLINE hn::Vec<D> apply(hn::Vec<D> x) const {
    if (left_ > 0) x = hn::ShiftLeftSame(x, left_);
    return divide(high_mul(D(), x, multiplier_, multiplier_));
  }
  // The second half: shifts the product, which is never INT32_MIN, to the right. Rounds halves away from zero by
  // subtracting one from negative values first.
  HWY_INLINE hn::Vec<D> divide(hn::Vec<D> high) const {
    if (right_ <= 0) return high;
    const auto twice = hn::ShiftRightSame(hn::Add(high, hn::BroadcastSignBit(high)), right_ - 1);
    return hn::ShiftRight<1>(hn::Add(twice, hn::Set(D(), 1)));
  }

 private:
  hn::Vec<D> multiplier_;
  int left_ = 0, right_ = 0;
};

// The same with a bias, a multiplier and a shift per lane, loaded once for many sums.
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
    right_ = hn::Max(hn::Neg(shifts), hn::Zero(d));
    // As OneScale::divide(), but lanes without a right shift are unchanged.
    all_to_the_right_ = hn::AllTrue(d, hn::Lt(shifts, hn::Zero(d)));
    last_ = hn::Min(right_, one);
    right_ = hn::Sub(right_, last_);
  }
  HWY_INLINE hn::Vec<D> apply(hn::Vec<D> sum) const {
    const D d;
    const auto x = hn::Add(sum, bias_);
    if (all_to_the_right_) {
      const auto high = high_mul(d, x, even_, odd_);
      const auto twice = hn::Shr(hn::Add(high, hn::BroadcastSignBit(high)), right_);
      return hn::ShiftRight<1>(hn::Add(twice, hn::Set(d, 1)));
    }
    const auto high = high_mul(d, hn::Shl(x, left_), even_, odd_);
    const auto below_zero = hn::And(hn::BroadcastSignBit(high), hn::Neg(last_));
    return hn::Shr(hn::Add(hn::Shr(hn::Add(high, below_zero), right_), last_), last_);
  }

 private:
  hn::Vec<D> bias_, even_, odd_, left_, right_, last_;
  bool all_to_the_right_ = false;
};

}  // namespace skillet::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
