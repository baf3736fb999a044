// Compiled once per instruction set, chosen at run time; without fused multiply-add, which would round differently.
#include "simd/interpolate.h"

#include <algorithm>
#include <type_traits>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/interpolate.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skillet::interpolate {
namespace HWY_NAMESPACE {

// The four pixels around an output pixel, and their weights; integer weights add up to 2^20, so that sums fit 32 bits.
template <typename T, typename Position>
struct Corners {
  const T *low_low, *high_low, *low_high, *high_high;
  Position y_low, y_high, x_low, x_high;
};

constexpr int32_t kHalf = 1 << 19;

inline int8_t between(const Corners<int8_t, int32_t>& c, size_t i) {
  const int32_t sum = c.low_low[i] * (c.y_low * c.x_low) + c.high_low[i] * (c.y_high * c.x_low) +
                      c.low_high[i] * (c.y_low * c.x_high) + c.high_high[i] * (c.y_high * c.x_high);
  return static_cast<int8_t>((sum + kHalf - (sum < 0 ? 1 : 0)) >> 20);
}

template <typename T>
inline T between(const Corners<T, float>& c, size_t i) {
  const float rounding = std::is_integral_v<T> ? 0.5F : 0.0F;
  const float value = static_cast<float>(c.low_low[i]) * c.y_low * c.x_low +
                      static_cast<float>(c.high_low[i]) * c.y_high * c.x_low +
                      static_cast<float>(c.low_high[i]) * c.y_low * c.x_high +
                      static_cast<float>(c.high_high[i]) * c.y_high * c.x_high + rounding;
  return static_cast<T>(value);
}

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void vector_between(D d32, const Corners<int8_t, int32_t>& c, size_t i, int8_t* out) {
  const hn::Rebind<int8_t, D> d8;
  const auto part = [&](const int8_t* pixel, int32_t weight) HWY_ATTR {
    return hn::Mul(hn::PromoteTo(d32, hn::LoadU(d8, pixel + i)), hn::Set(d32, weight));
  };
  const auto low = hn::Add(part(c.low_low, c.y_low * c.x_low), part(c.high_low, c.y_high * c.x_low));
  const auto high = hn::Add(part(c.low_high, c.y_low * c.x_high), part(c.high_high, c.y_high * c.x_high));
  const auto sum = hn::Add(low, high);
  const auto rounded = hn::Add(hn::Add(sum, hn::Set(d32, kHalf)), hn::BroadcastSignBit(sum));
  hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<20>(rounded)), d8, out + i);
}

template <class D, typename T>
HWY_INLINE auto load_float(D d32, const T* from) {
  const hn::Rebind<float, D> df;
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(df, from);
  } else {
    return hn::ConvertTo(df, hn::PromoteTo(d32, hn::LoadU(hn::Rebind<T, D>(), from)));
  }
}

template <class D, typename T>
HWY_INLINE void vector_between(D d32, const Corners<T, float>& c, size_t i, T* out) {
  const hn::Rebind<float, D> df;
  const auto part = [&](const T* pixel, float y, float x) HWY_ATTR {
    return hn::Mul(hn::Mul(load_float(d32, pixel + i), hn::Set(df, y)), hn::Set(df, x));
  };
  const auto left = hn::Add(part(c.low_low, c.y_low, c.x_low), part(c.high_low, c.y_high, c.x_low));
  const auto three = hn::Add(left, part(c.low_high, c.y_low, c.x_high));
  const auto sum = hn::Add(three, part(c.high_high, c.y_high, c.x_high));
  if constexpr (std::is_same_v<T, float>) {
    hn::StoreU(hn::Add(sum, hn::Zero(df)), df, out + i);
  } else {
    const hn::Rebind<T, D> d8;
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(d32, hn::Add(sum, hn::Set(df, 0.5F)))), d8, out + i);
  }
}

// The last vector is moved back so that it fits: some elements are computed twice.
template <class D, typename T, typename Position>
HWY_INLINE void vectors_between(D d, const Corners<T, Position>& c, size_t depth, T* out) {
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < depth; i += lanes) vector_between(d, c, std::min(i, depth - lanes), out);
}
#endif

template <typename T, typename Position>
HWY_INLINE void pixel(const Corners<T, Position>& c, size_t depth, T* out) {
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::CappedTag<int32_t, 16> large;
  const hn::CappedTag<int32_t, 4> small;
  if (depth >= hn::Lanes(large)) return vectors_between(large, c, depth, out);
  if (depth >= hn::Lanes(small)) return vectors_between(small, c, depth, out);
#endif
  for (size_t i = 0; i < depth; ++i) out[i] = between(c, i);
}

template <typename T, typename Position>
HWY_INLINE void row_of(const T* low, const T* high, Position down, std::span<const Place<Position>> across,
                       size_t depth, T* out) {
  const Position one = std::is_integral_v<Position> ? 1024 : 1;
  for (const Place<Position>& x : across) {
    const size_t left = x.low * depth, right = x.high * depth;
    const Corners<T, Position> corners{low + left, high + left, low + right, high + right,
                                       one - down, down,        one - x.at,  x.at};
    pixel(corners, depth, out);
    out += depth;
  }
}

void RowI8(const int8_t* low, const int8_t* high, int32_t down, std::span<const Place<int32_t>> across, size_t depth,
           int8_t* out) {
  row_of(low, high, down, across, depth, out);
}
void RowU8(const uint8_t* low, const uint8_t* high, float down, std::span<const Place<float>> across, size_t depth,
           uint8_t* out) {
  row_of(low, high, down, across, depth, out);
}
void RowF32(const float* low, const float* high, float down, std::span<const Place<float>> across, size_t depth,
            float* out) {
  row_of(low, high, down, across, depth, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace skillet::interpolate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skillet::interpolate {

HWY_EXPORT(RowI8);
HWY_EXPORT(RowU8);
HWY_EXPORT(RowF32);

void row(const int8_t* low, const int8_t* high, int32_t down, std::span<const Place<int32_t>> across, size_t depth,
         int8_t* out) {
  HWY_DYNAMIC_DISPATCH(RowI8)(low, high, down, across, depth, out);
}
void row(const uint8_t* low, const uint8_t* high, float down, std::span<const Place<float>> across, size_t depth,
         uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(RowU8)(low, high, down, across, depth, out);
}
void row(const float* low, const float* high, float down, std::span<const Place<float>> across, size_t depth,
         float* out) {
  HWY_DYNAMIC_DISPATCH(RowF32)(low, high, down, across, depth, out);
}

}  // namespace skillet::interpolate
#endif  // HWY_ONCE
