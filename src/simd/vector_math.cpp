// Compiled once per instruction set, chosen at run time.
#include "simd/vector_math.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/vector_math.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "simd/fixed_point-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace skillet::vector_math {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
// x86 without SSE4: the plain loops.

template <typename T>
void quantize_any(const uint8_t* in, size_t count, float scale, int32_t zero_point, T* out) {
  constexpr int32_t kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  for (size_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, in + 4 * i, sizeof(value));
    const float scaled = value / scale;
    const float limited = std::min(scaled > -1e6F ? scaled : -1e6F, 1e6F);
    const auto whole = static_cast<int32_t>(limited);
    const float rest = limited - static_cast<float>(whole);
    const int32_t rounded = whole + (rest >= 0.5F ? 1 : 0) - (rest <= -0.5F ? 1 : 0);
    out[i] = static_cast<T>(std::clamp(rounded + zero_point, kMin, kMax));
  }
}

template <typename T>
void dequantize_any(const T* in, size_t count, float scale, int32_t zero_point, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(in[i] - zero_point);
}

template <typename T>
void maximum_any(const T* const* in, size_t rows, size_t count, T low, T high, T* out) {
  for (size_t i = 0; i < count; ++i) {
    T most = low;
    for (size_t r = 0; r < rows; ++r) most = std::max(most, in[r][i]);
    out[i] = std::min(most, high);
  }
}

void LookUp(const uint8_t* in, size_t count, const std::array<uint8_t, 256>& table, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

int32_t operand(int32_t value, const Operand& o) {
  const int32_t x = (value - o.zero_point) * (1 << o.left_shift);
  return o.by ? multiply_by_quantized_multiplier(x, *o.by) : x;
}

int32_t combined(Combine how, int32_t a, int32_t b) {
  if (how == Combine::sum) return a + b;
  if (how == Combine::product) return a * b;
  return how == Combine::difference ? a - b : (a - b) * (a - b);
}

template <typename T>
void combine_any(const T* a, const T* b, size_t count, const Combination& c, T* out) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t both = combined(c.how, operand(a[i * c.a.step], c.a), operand(b[i * c.b.step], c.b));
    const int32_t value = wrapping_add(multiply_by_quantized_multiplier(both, c.output), c.zero_point);
    out[i] = static_cast<T>(std::clamp(value, c.min, c.max));
  }
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::CappedTag<int32_t, 16>;
using V32 = hn::Vec<D32>;
using Scale = skillet::HWY_NAMESPACE::OneScale<D32>;

// Calls body(i, count) for each vector of elements; the last one may be shorter.
template <class D, typename Body>
HWY_INLINE void for_vectors(D d, size_t count, Body body) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) body(i, lanes);
  if (i < count) body(i, count - i);
}

// Loads `n` elements; lanes beyond them are 0, and are not stored.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* in, size_t n) {
  if (n == hn::Lanes(d)) return hn::LoadU(d, in);
  HWY_ALIGN T padded[64] = {};
  std::copy_n(in, n, padded);
  return hn::Load(d, padded);
}
template <class D, typename T>
HWY_INLINE void store(D d, hn::Vec<D> value, T* out, size_t n) {
  if (n == hn::Lanes(d)) return hn::StoreU(value, d, out);
  HWY_ALIGN T padded[64];
  hn::Store(value, d, padded);
  std::copy_n(padded, n, out);
}

template <typename T, class D>
HWY_INLINE void store_clamped(D d32, hn::Vec<D> value, int32_t low, int32_t high, T* out, size_t count) {
  const hn::Rebind<T, D> narrow;
  const auto clamped = hn::Min(hn::Max(value, hn::Set(d32, low)), hn::Set(d32, high));
  store(narrow, hn::DemoteTo(narrow, clamped), out, count);
}

using F32 = hn::Vec<hn::Rebind<float, D32> >;

// Halves away from zero; NaN fails all comparisons and becomes the lowest value.
HWY_INLINE V32 round_quotients(F32 scaled, F32 limit) {
  const D32 d32;
  const hn::Rebind<float, D32> df;
  const auto half = hn::Set(df, 0.5F);
  const auto at_least = hn::IfThenElse(hn::Gt(scaled, hn::Neg(limit)), scaled, hn::Neg(limit));
  const auto limited = hn::IfThenElse(hn::Lt(at_least, limit), at_least, limit);
  const auto whole = hn::ConvertTo(d32, limited);
  const auto rest = hn::Sub(limited, hn::ConvertTo(df, whole));
  const auto up = hn::VecFromMask(d32, hn::RebindMask(d32, hn::Ge(rest, half)));
  const auto down = hn::VecFromMask(d32, hn::RebindMask(d32, hn::Le(rest, hn::Neg(half))));
  return hn::Add(hn::Sub(whole, up), down);
}

template <typename T>
HWY_INLINE void quantize_any(const uint8_t* in, size_t count, float scale, int32_t zero_point, T* out) {
  const D32 d32;
  const hn::Rebind<float, D32> df;
  const hn::Repartition<uint8_t, D32> bytes;
  // The product with the inverse equals the quotient except in the last bits. If no lane of a vector is close to a
  // half, both round to the same values.
  constexpr float kLimit = sizeof(T) == 1 ? 1024 : 1 << 17, kOff = kLimit / (1 << 21);
  const bool has_inverse = std::isnormal(scale) && std::isnormal(1 / scale);
  const auto limit = hn::Set(df, kLimit), by = hn::Set(df, scale), inverse = hn::Set(df, has_inverse ? 1 / scale : NAN);
  const auto far_from_half = hn::Set(df, 0.5F - kOff);
  for_vectors(d32, count, [&](size_t i, size_t n) {
    const auto real = hn::BitCast(df, load(bytes, in + 4 * i, 4 * n));
    const auto product = hn::Mul(real, inverse), nearest = hn::Round(product);
    V32 value;
    if (hn::AllTrue(df, hn::Le(hn::Abs(hn::Sub(product, nearest)), far_from_half))) {
      value = hn::ConvertTo(d32, hn::Min(hn::Max(nearest, hn::Neg(limit)), limit));
    } else {
      value = round_quotients(hn::Div(real, by), limit);
    }
    value = hn::Add(value, hn::Set(d32, zero_point));
    store_clamped(d32, value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), out + i, n);
  });
}

template <typename T>
HWY_INLINE void dequantize_any(const T* in, size_t count, float scale, int32_t zero_point, float* out) {
  const D32 d32;
  const hn::Rebind<T, D32> d8;
  const hn::Rebind<float, D32> df;
  const auto by = hn::Set(df, scale);
  for_vectors(d32, count, [&](size_t i, size_t n) {
    const auto value = hn::Sub(hn::PromoteTo(d32, load(d8, in + i, n)), hn::Set(d32, zero_point));
    store(df, hn::Mul(by, hn::ConvertTo(df, value)), out + i, n);
  });
}

template <typename T>
HWY_INLINE void maximum_any(const T* const* in, size_t rows, size_t count, T low, T high, T* out) {
  const hn::CappedTag<T, 64> d;
  for_vectors(d, count, [&](size_t i, size_t n) {
    auto most = hn::Set(d, low);
    for (size_t r = 0; r < rows; ++r) most = hn::Max(most, load(d, in[r] + i, n));
    store(d, hn::Min(most, hn::Set(d, high)), out + i, n);
  });
}

// Looks up 16 entries at a time: indices outside these give 0.
void LookUp(const uint8_t* in, size_t count, const std::array<uint8_t, 256>& table, uint8_t* out) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto to_high_bit = hn::Set(d, 0x70), sixteen = hn::Set(d, 16);
  for_vectors(d, count, [&](size_t i, size_t n) {
    auto index = load(d, in + i, n);
    auto found = hn::Zero(d);
    for (size_t first = 0; first < table.size(); first += 16) {
      const auto entries = hn::LoadDup128(d, table.data() + first);
      found = hn::Or(found, hn::TableLookupBytesOr0(entries, hn::SaturatedAdd(index, to_high_bit)));
      index = hn::Sub(index, sixteen);
    }
    store(d, found, out + i, n);
  });
}

// An operand before it is combined. Bytes that are shifted far to the left are multiplied before the shift: by the two
// halves of the multiplier separately, in 32 bits.
class OperandScale {
 public:
  HWY_INLINE explicit OperandScale(const Operand& o)
      : by_(o.by.value_or(QuantizedMultiplier{})), left_shift_(o.left_shift), scaled_(o.by.has_value()) {
    const D32 d32;
    halves_ = left_shift_ == kLeftShift && scaled_ && o.by->shift <= 0;
    zero_point_ = hn::Set(d32, o.zero_point);
    const int32_t multiplier = halves_ ? o.by->multiplier : 0;
    upper_ = hn::Set(d32, multiplier >> 16 << (kLeftShift - 15));
    lower_ = hn::Set(d32, multiplier & 0xffff);
  }
  HWY_INLINE V32 apply(V32 byte) const {
    const auto x = hn::Sub(byte, zero_point_);
    if (!halves_) {
      const auto shifted = hn::ShiftLeftSame(x, left_shift_);
      return scaled_ ? by_.apply(shifted) : shifted;
    }
    const auto half = hn::Set(D32(), 1 << (30 - kLeftShift));
    const auto rest = hn::ShiftRight<31 - kLeftShift>(hn::Add(hn::Mul(x, lower_), half));
    return by_.divide(hn::Add(hn::Mul(x, upper_), rest));
  }

 private:
  static constexpr int kLeftShift = 20;
  Scale by_;
  V32 zero_point_, upper_, lower_;
  int left_shift_ = 0;
  bool scaled_ = false, halves_ = false;
};

template <Combine kHow>
HWY_INLINE V32 combined(V32 a, V32 b) {
  if (kHow == Combine::sum) return hn::Add(a, b);
  if (kHow == Combine::product) return hn::Mul(a, b);
  const auto difference = hn::Sub(a, b);
  return kHow == Combine::difference ? difference : hn::Mul(difference, difference);
}

// The last vector is moved back so that it fits: some elements are computed twice.
template <Combine kHow, typename T>
HWY_INLINE void combine_vectors(const T* a, const T* b, size_t count, const Combination& c, T* out) {
  const D32 d32;
  const hn::Rebind<T, D32> d8;
  const size_t lanes = hn::Lanes(d32);
  const OperandScale a_scale(c.a), b_scale(c.b);
  const Scale output(c.output);
  const bool a_varies = c.a.step != 0, b_varies = c.b.step != 0;
  const auto only_a = a_scale.apply(hn::Set(d32, static_cast<int32_t>(*a)));
  const auto only_b = b_scale.apply(hn::Set(d32, static_cast<int32_t>(*b)));
  const auto zero_point = hn::Set(d32, c.zero_point), low = hn::Set(d32, c.min), high = hn::Set(d32, c.max);
  for (size_t i = 0; i < count; i += lanes) {
    const size_t first = std::min(i, count - lanes);
    const auto x = a_varies ? a_scale.apply(hn::PromoteTo(d32, hn::LoadU(d8, a + first))) : only_a;
    const auto y = b_varies ? b_scale.apply(hn::PromoteTo(d32, hn::LoadU(d8, b + first))) : only_b;
    const auto value = hn::Add(output.apply(combined<kHow>(x, y)), zero_point);
    hn::StoreU(hn::DemoteTo(d8, hn::Min(hn::Max(value, low), high)), d8, out + first);
  }
}

template <Combine kHow, typename T>
HWY_INLINE void combine_as(const T* a, const T* b, size_t count, const Combination& c, T* out) {
  const size_t lanes = hn::Lanes(D32());
  if (count >= lanes) return combine_vectors<kHow>(a, b, count, c, out);
  if (count == 0) return;
  HWY_ALIGN T padded[3][16] = {};
  std::copy_n(a, c.a.step == 0 ? 1 : count, padded[0]);
  std::copy_n(b, c.b.step == 0 ? 1 : count, padded[1]);
  combine_vectors<kHow>(padded[0], padded[1], lanes, c, padded[2]);
  std::copy_n(padded[2], count, out);
}

template <typename T>
HWY_INLINE void combine_any(const T* a, const T* b, size_t count, const Combination& c, T* out) {
  switch (c.how) {
    case Combine::sum: return combine_as<Combine::sum>(a, b, count, c, out);
    case Combine::difference: return combine_as<Combine::difference>(a, b, count, c, out);
    case Combine::product: return combine_as<Combine::product>(a, b, count, c, out);
    case Combine::squared_difference: return combine_as<Combine::squared_difference>(a, b, count, c, out);
  }
}
#endif  // HWY_SCALAR || HWY_EMU128

void QuantizeI8(const uint8_t* in, size_t count, float scale, int32_t zero_point, int8_t* out) {
  quantize_any(in, count, scale, zero_point, out);
}
void QuantizeU8(const uint8_t* in, size_t count, float scale, int32_t zero_point, uint8_t* out) {
  quantize_any(in, count, scale, zero_point, out);
}
void QuantizeI16(const uint8_t* in, size_t count, float scale, int32_t zero_point, int16_t* out) {
  quantize_any(in, count, scale, zero_point, out);
}
void DequantizeI8(const int8_t* in, size_t count, float scale, int32_t zero_point, float* out) {
  dequantize_any(in, count, scale, zero_point, out);
}
void DequantizeU8(const uint8_t* in, size_t count, float scale, int32_t zero_point, float* out) {
  dequantize_any(in, count, scale, zero_point, out);
}
void MaximumI8(const int8_t* const* in, size_t rows, size_t count, int8_t low, int8_t high, int8_t* out) {
  maximum_any(in, rows, count, low, high, out);
}
void MaximumU8(const uint8_t* const* in, size_t rows, size_t count, uint8_t low, uint8_t high, uint8_t* out) {
  maximum_any(in, rows, count, low, high, out);
}
void CombineI8(const int8_t* a, const int8_t* b, size_t count, const Combination& c, int8_t* out) {
  combine_any(a, b, count, c, out);
}
void CombineU8(const uint8_t* a, const uint8_t* b, size_t count, const Combination& c, uint8_t* out) {
  combine_any(a, b, count, c, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace skillet::vector_math
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skillet::vector_math {

HWY_EXPORT(QuantizeI8);
HWY_EXPORT(QuantizeU8);
HWY_EXPORT(QuantizeI16);
HWY_EXPORT(DequantizeI8);
HWY_EXPORT(DequantizeU8);
HWY_EXPORT(MaximumI8);
HWY_EXPORT(MaximumU8);
HWY_EXPORT(LookUp);
HWY_EXPORT(CombineI8);
HWY_EXPORT(CombineU8);

void quantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(QuantizeI8)(in, count, scale, zero_point, out);
}
void quantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(QuantizeU8)(in, count, scale, zero_point, out);
}
void quantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, int16_t* out) {
  HWY_DYNAMIC_DISPATCH(QuantizeI16)(in, count, scale, zero_point, out);
}
void dequantize(const int8_t* in, size_t count, float scale, int32_t zero_point, float* out) {
  HWY_DYNAMIC_DISPATCH(DequantizeI8)(in, count, scale, zero_point, out);
}
void dequantize(const uint8_t* in, size_t count, float scale, int32_t zero_point, float* out) {
  HWY_DYNAMIC_DISPATCH(DequantizeU8)(in, count, scale, zero_point, out);
}
void maximum(const int8_t* const* in, size_t rows, size_t count, int8_t low, int8_t high, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(MaximumI8)(in, rows, count, low, high, out);
}
void maximum(const uint8_t* const* in, size_t rows, size_t count, uint8_t low, uint8_t high, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(MaximumU8)(in, rows, count, low, high, out);
}
void look_up(const uint8_t* in, size_t count, const std::array<uint8_t, 256>& table, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(LookUp)(in, count, table, out);
}
void combine(const int8_t* a, const int8_t* b, size_t count, const Combination& c, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(CombineI8)(a, b, count, c, out);
}
void combine(const uint8_t* a, const uint8_t* b, size_t count, const Combination& c, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(CombineU8)(a, b, count, c, out);
}

}  // namespace skillet::vector_math
#endif  // HWY_ONCE
