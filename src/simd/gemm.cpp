// Row-times-row dot products, register blocked: int16 pairs are multiplied and added into int32 lanes, and the lanes
// are summed once per output. Compiled once per instruction set, chosen at run time.
#include "simd/gemm.h"

#include <algorithm>

#include "base/fixed_point.h"

// The blocks below are arrays of vectors; SVE's vectors have no size at compile time, so 64-bit ARM uses NEON.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "simd/fixed_point-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace skillet::gemm {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
// x86 without SSE4: the plain loops.

void MatmulI16(const int16_t* a, size_t rows, size_t a_stride, const int16_t* b, size_t cols, size_t b_stride,
               size_t depth, int32_t* c, size_t c_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t n = 0; n < cols; ++n) {
      uint32_t sum = 0;
      for (size_t k = 0; k < depth; ++k) sum += static_cast<uint32_t>(a[r * a_stride + k] * b[n * b_stride + k]);
      c[r * c_stride + n] = static_cast<int32_t>(sum);
    }
  }
}

template <typename T>
void widen_any(const T* in, size_t count, int32_t zero_point, int16_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int16_t>(in[i] - zero_point);
}

template <typename T>
void requantize_any(const int32_t* acc, size_t rows, size_t count, const Requantize& how, T* out) {
  for (size_t k = 0; k < rows * count; ++k) {
    const size_t i = k % count;
    const int32_t x = how.bias == nullptr ? acc[k] : wrapping_add(acc[k], how.bias[i]);
    const int32_t scaled = multiply_by_quantized_multiplier(x, {how.multiplier[i], how.shift[i]});
    out[k] = static_cast<T>(std::clamp(wrapping_add(scaled, how.output_zero_point), how.clamp_min, how.clamp_max));
  }
}

void AddTaps(const uint8_t* in, const size_t* offsets, const int32_t* weights, size_t taps, size_t count,
             int32_t* sums) {
  for (size_t t = 0; t < taps; ++t) {
    for (size_t i = 0; i < count; ++i) sums[i] = wrapping_add(sums[i], weights[t] * in[offsets[t] + i]);
  }
}

void DepthwisePixel(const int8_t* const* windows, const int8_t* weights, size_t weight_stride, size_t taps,
                    size_t count, int32_t* sums, int32_t* totals) {
  for (size_t i = 0; i < count; ++i) {
    sums[i] = totals[i] = 0;
    for (size_t t = 0; t < taps; ++t) {
      sums[i] += windows[t][i] * weights[t * weight_stride + i];
      totals[i] += windows[t][i];
    }
  }
}

// (value + half - 1 + result) >> shift rounds as `ties` requires.
int64_t tie_addend(int64_t value, const Step& step) {
  switch (step.ties) {
    case Ties::up: return 1;
    case Ties::down: return 0;
    case Ties::away: return value < 0 ? 0 : 1;
    case Ties::even: return value >> step.shift & 1;
  }
  return 0;
}

void RunStep(const Step& step, size_t count, int32_t* values) {
  const auto clamped = [](int64_t value) { return std::clamp<int64_t>(value, INT32_MIN, INT32_MAX); };
  for (size_t i = 0; i < count; ++i) {
    const int64_t sum = clamped(int64_t{values[i]} + (step.addends != nullptr ? step.addends[i] : 0));
    int64_t value = sum * (step.multipliers != nullptr ? step.multipliers[i] : step.multiplier);
    if (step.shift > 0) value = (value + (int64_t{1} << (step.shift - 1)) - 1 + tie_addend(value, step)) >> step.shift;
    values[i] = std::min(std::max(static_cast<int32_t>(clamped(value)), step.low), step.high);
  }
}

void MultiplyAdd(const int32_t* sums, const int32_t* factors, const int32_t* windows, size_t window_step, size_t count,
                 int32_t* values) {
  for (size_t i = 0; i < count; ++i) {
    const auto product = static_cast<uint32_t>(int64_t{factors[i]} * windows[i * window_step]);
    values[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + product);
  }
}

void Narrow(const int32_t* in, size_t count, int32_t low, int32_t high, int32_t offset, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(std::clamp(in[i], low, high) + offset);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

// At most kDepthAlign lanes, so that a row is a whole number of vectors.
using D16 = hn::CappedTag<int16_t, 32>;
using D32 = hn::RepartitionToWide<D16>;
using V32 = hn::Vec<D32>;

// Accumulators must stay in registers: 16 vectors are used only with 32 registers and one vector per sum.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3_ZEN4
constexpr size_t kRowBlock = 4;
#else
constexpr size_t kRowBlock = 2;
#endif
constexpr size_t kColBlock = 4;

#if !HWY_HAVE_SCALABLE
// Lane j of each 128-bit block of the result is the sum of the lanes of v_j in that block.
HWY_INLINE V32 sum_four(V32 v0, V32 v1, V32 v2, V32 v3) {
  const D32 d;
  const auto even = hn::Add(hn::InterleaveLower(d, v0, v2), hn::InterleaveUpper(d, v0, v2));
  const auto odd = hn::Add(hn::InterleaveLower(d, v1, v3), hn::InterleaveUpper(d, v1, v3));
  return hn::Add(hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd));
}

// Sum of the 128-bit blocks.
template <class D>
HWY_INLINE hn::Vec<hn::Full128<int32_t> > sum_blocks(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

template <size_t kRows, size_t kCols>
HWY_INLINE void dot_block(const int16_t* HWY_RESTRICT a, size_t a_stride, const int16_t* HWY_RESTRICT b,
                          size_t b_stride, size_t depth, int32_t* HWY_RESTRICT c, size_t c_stride) {
  const D16 d16;
  const D32 d32;
  V32 low[kRows][kCols], high[kRows][kCols];
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kCols; ++j) low[i][j] = high[i][j] = hn::Zero(d32);
  }
  for (size_t k = 0; k < depth; k += hn::Lanes(d16)) {
    hn::Vec<D16> column[kCols];
    for (size_t j = 0; j < kCols; ++j) column[j] = hn::LoadU(d16, b + j * b_stride + k);
    for (size_t i = 0; i < kRows; ++i) {
      const auto row = hn::LoadU(d16, a + i * a_stride + k);
      for (size_t j = 0; j < kCols; ++j) {
        low[i][j] = hn::ReorderWidenMulAccumulate(d32, row, column[j], low[i][j], high[i][j]);
      }
    }
  }
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kCols; ++j) low[i][j] = hn::Add(low[i][j], high[i][j]);
#if !HWY_HAVE_SCALABLE
    if constexpr (kCols == 4) {
      const hn::Full128<int32_t> d;
      hn::StoreU(sum_blocks(d32, sum_four(low[i][0], low[i][1], low[i][2], low[i][3])), d, c + i * c_stride);
      continue;
    }
#endif
    for (size_t j = 0; j < kCols; ++j) c[i * c_stride + j] = hn::GetLane(hn::SumOfLanes(d32, low[i][j]));
  }
}

template <size_t kRows>
HWY_INLINE void row_block(const int16_t* a, size_t a_stride, const int16_t* b, size_t cols, size_t b_stride,
                          size_t depth, int32_t* c, size_t c_stride) {
  size_t n = 0;
  for (; n + kColBlock <= cols; n += kColBlock) {
    dot_block<kRows, kColBlock>(a, a_stride, b + n * b_stride, b_stride, depth, c + n, c_stride);
  }
  for (; n < cols; ++n) dot_block<kRows, 1>(a, a_stride, b + n * b_stride, b_stride, depth, c + n, c_stride);
}

void MatmulI16(const int16_t* a, size_t rows, size_t a_stride, const int16_t* b, size_t cols, size_t b_stride,
               size_t depth, int32_t* c, size_t c_stride) {
  // A block of b that stays in the cache for all rows of a.
  constexpr size_t kCacheBytes = 128 * 1024;
  const size_t fitting = kCacheBytes / (sizeof(int16_t) * std::max<size_t>(depth, 1));
  const size_t col_step = std::max<size_t>(fitting / kColBlock, 4) * kColBlock;
  for (size_t n = 0; n < cols; n += col_step) {
    const size_t width = std::min(col_step, cols - n);
    const int16_t* block = b + n * b_stride;
    size_t r = 0;
    for (; r + kRowBlock <= rows; r += kRowBlock) {
      row_block<kRowBlock>(a + r * a_stride, a_stride, block, width, b_stride, depth, c + r * c_stride + n, c_stride);
    }
    for (; r < rows; ++r) {
      row_block<1>(a + r * a_stride, a_stride, block, width, b_stride, depth, c + r * c_stride + n, c_stride);
    }
  }
}

template <typename T>
HWY_INLINE void widen_any(const T* in, size_t count, int32_t zero_point, int16_t* out) {
  const D16 d16;
  const hn::Rebind<T, D16> d8;
  const auto zero = hn::Set(d16, static_cast<int16_t>(zero_point));
  size_t i = 0;
  for (; i + hn::Lanes(d16) <= count; i += hn::Lanes(d16)) {
    hn::StoreU(hn::Sub(hn::PromoteTo(d16, hn::LoadU(d8, in + i)), zero), d16, out + i);
  }
  for (; i < count; ++i) out[i] = static_cast<int16_t>(in[i] - zero_point);
}

void AddTaps(const uint8_t* in, const size_t* offsets, const int32_t* weights, size_t taps, size_t count,
             int32_t* sums) {
  const D32 d32;
  const hn::Rebind<uint8_t, D32> d8;
  size_t i = 0;
  for (; i + hn::Lanes(d32) <= count; i += hn::Lanes(d32)) {
    auto sum = hn::LoadU(d32, sums + i);
    for (size_t t = 0; t < taps; ++t) {
      const auto pixels = hn::PromoteTo(d32, hn::LoadU(d8, in + offsets[t] + i));
      sum = hn::Add(sum, hn::Mul(pixels, hn::Set(d32, weights[t])));
    }
    hn::StoreU(sum, d32, sums + i);
  }
  for (; i < count; ++i) {
    for (size_t t = 0; t < taps; ++t) sums[i] = wrapping_add(sums[i], weights[t] * in[offsets[t] + i]);
  }
}

void DepthwisePixel(const int8_t* const* windows, const int8_t* weights, size_t weight_stride, size_t taps,
                    size_t count, int32_t* sums, int32_t* totals) {
  const D32 d32;
  const hn::Rebind<int8_t, D32> d8;
  size_t i = 0;
  for (; i + hn::Lanes(d32) <= count; i += hn::Lanes(d32)) {
    auto sum = hn::Zero(d32), total = hn::Zero(d32);
    for (size_t t = 0; t < taps; ++t) {
      const auto feature = hn::PromoteTo(d32, hn::LoadU(d8, windows[t] + i));
      sum = hn::Add(sum, hn::Mul(feature, hn::PromoteTo(d32, hn::LoadU(d8, weights + t * weight_stride + i))));
      total = hn::Add(total, feature);
    }
    hn::StoreU(sum, d32, sums + i);
    hn::StoreU(total, d32, totals + i);
  }
  for (; i < count; ++i) {
    sums[i] = totals[i] = 0;
    for (size_t t = 0; t < taps; ++t) {
      sums[i] += windows[t][i] * weights[t * weight_stride + i];
      totals[i] += windows[t][i];
    }
  }
}

using D64 = hn::RepartitionToWide<D32>;
using V64 = hn::Vec<D64>;

// Clamped to 32 bits. (value + half - 1 + t) >> shift, where t selects the rounding of ties.
HWY_INLINE V64 round_to_32_bits(V64 value, const Step& step) {
  const D64 d64;
  if (step.shift > 0) {
    const auto one = hn::Set(d64, 1);
    auto t = hn::Zero(d64);
    if (step.ties == Ties::up) t = one;
    if (step.ties == Ties::away) t = hn::Add(one, hn::BroadcastSignBit(value));
    if (step.ties == Ties::even) t = hn::And(hn::ShiftRightSame(value, step.shift), one);
    const auto below_half = hn::Set(d64, (int64_t{1} << (step.shift - 1)) - 1);
    value = hn::ShiftRightSame(hn::Add(hn::Add(value, below_half), t), step.shift);
  }
  return hn::Min(hn::Max(value, hn::Set(d64, INT32_MIN)), hn::Set(d64, INT32_MAX));
}

HWY_INLINE V32 scaled(V32 x, V32 by, const Step& step) {
  const D32 d32;
  const hn::RebindToUnsigned<D64> du64;
  const auto odd_x = hn::BitCast(d32, hn::ShiftRight<32>(hn::BitCast(du64, x)));
  const auto odd_by = hn::BitCast(d32, hn::ShiftRight<32>(hn::BitCast(du64, by)));
  const auto even = round_to_32_bits(hn::MulEven(x, by), step);
  const auto odd = round_to_32_bits(hn::MulEven(odd_x, odd_by), step);
  return hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(odd)), hn::BitCast(d32, even));
}

HWY_INLINE V32 saturated_sum(V32 a, V32 b) {
  const auto sum = hn::Add(a, b);
  const auto overflow = hn::BroadcastSignBit(hn::And(hn::Xor(a, sum), hn::Xor(b, sum)));
  const auto limit = hn::Xor(hn::BroadcastSignBit(a), hn::Set(D32(), INT32_MAX));
  return hn::IfThenElse(hn::MaskFromVec(overflow), limit, sum);
}

// Processes a vector of values, with the matching elements of each array.
HWY_INLINE void step_vector(const Step& step, const int32_t* addends, const int32_t* multipliers, int32_t* values) {
  const D32 d32;
  auto x = hn::LoadU(d32, values);
  if (addends != nullptr) x = saturated_sum(x, hn::LoadU(d32, addends));
  const auto by = multipliers != nullptr ? hn::LoadU(d32, multipliers) : hn::Set(d32, step.multiplier);
  if (multipliers != nullptr || step.multiplier != 1 || step.shift != 0) x = scaled(x, by, step);
  hn::StoreU(hn::Min(hn::Max(x, hn::Set(d32, step.low)), hn::Set(d32, step.high)), d32, values);
}

void RunStep(const Step& step, size_t count, int32_t* values) {
  constexpr size_t kLanesMax = 32;
  const size_t lanes = hn::Lanes(D32());
  const auto at = [](const int32_t* array, size_t i) { return array != nullptr ? array + i : nullptr; };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) step_vector(step, at(step.addends, i), at(step.multipliers, i), values + i);
  if (i == count) return;
  int32_t tail[3][kLanesMax] = {};
  const auto copied = [&](const int32_t* array, int32_t* to) {
    if (array != nullptr) std::copy_n(array + i, count - i, to);
    return array != nullptr ? to : nullptr;
  };
  std::copy_n(values + i, count - i, tail[0]);
  step_vector(step, copied(step.addends, tail[1]), copied(step.multipliers, tail[2]), tail[0]);
  std::copy_n(tail[0], count - i, values + i);
}

void MultiplyAdd(const int32_t* sums, const int32_t* factors, const int32_t* windows, size_t window_step, size_t count,
                 int32_t* values) {
  const D32 d32;
  const size_t lanes = hn::Lanes(d32);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto window = window_step == 0 ? hn::Set(d32, windows[0]) : hn::LoadU(d32, windows + i);
    hn::StoreU(hn::Add(hn::LoadU(d32, sums + i), hn::Mul(hn::LoadU(d32, factors + i), window)), d32, values + i);
  }
  for (; i < count; ++i) {
    const auto product = static_cast<uint32_t>(int64_t{factors[i]} * windows[i * window_step]);
    values[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + product);
  }
}

void Narrow(const int32_t* in, size_t count, int32_t low, int32_t high, int32_t offset, uint8_t* out) {
  const D32 d32;
  const hn::Rebind<uint8_t, D32> d8;
  const auto low_byte = hn::Set(d32, 0xff);
  size_t i = 0;
  for (; i + hn::Lanes(d32) <= count; i += hn::Lanes(d32)) {
    const auto clamped = hn::Min(hn::Max(hn::LoadU(d32, in + i), hn::Set(d32, low)), hn::Set(d32, high));
    hn::StoreU(hn::DemoteTo(d8, hn::And(hn::Add(clamped, hn::Set(d32, offset)), low_byte)), d8, out + i);
  }
  for (; i < count; ++i) out[i] = static_cast<uint8_t>(std::clamp(in[i], low, high) + offset);
}

// Requantizes a vector of channels.
template <typename T>
class RequantizeChannels {
 public:
  HWY_INLINE explicit RequantizeChannels(const Requantize& how)
      : by_(how.bias, how.multiplier, how.shift),
        zero_point_(hn::Set(D32(), how.output_zero_point)),
        low_(hn::Set(D32(), how.clamp_min)),
        high_(hn::Set(D32(), how.clamp_max)) {}
  HWY_INLINE void apply(const int32_t* sums, T* out) const {
    const D32 d32;
    const hn::Rebind<T, D32> d8;
    const auto value = hn::Add(by_.apply(hn::LoadU(d32, sums)), zero_point_);
    hn::StoreU(hn::DemoteTo(d8, hn::Min(hn::Max(value, low_), high_)), d8, out);
  }

 private:
  skillet::HWY_NAMESPACE::ChannelScale<D32> by_;
  V32 zero_point_, low_, high_;
};

// For rows shorter than a vector: several rows at once. Elements written beyond them are overwritten with the next
// ones.
template <typename T>
HWY_INLINE void requantize_narrow(const int32_t* acc, size_t rows, size_t count, const Requantize& how, T* out) {
  if (count == 0) return;
  const size_t lanes = hn::Lanes(D32()), at_once = lanes / count;
  HWY_ALIGN int32_t padded[4][32] = {};
  HWY_ALIGN T padded_out[32];
  for (size_t i = 0; i < at_once * count; ++i) {
    if (how.bias != nullptr) padded[1][i] = how.bias[i % count];
    padded[2][i] = how.multiplier[i % count];
    padded[3][i] = how.shift[i % count];
  }
  Requantize all = how;
  all.bias = padded[1];
  all.multiplier = padded[2];
  all.shift = padded[3];
  const RequantizeChannels<T> channels(all);
  for (size_t r = 0; r < rows; r += at_once) {
    const size_t left = (rows - r) * count;
    if (left >= lanes) {
      channels.apply(acc + r * count, out + r * count);
    } else {
      std::copy_n(acc + r * count, left, padded[0]);
      channels.apply(padded[0], padded_out);
      std::copy_n(padded_out, left, out + r * count);
    }
  }
}

// The last vector of a row is moved back so that it fits: some elements are computed twice.
template <typename T>
HWY_INLINE void requantize_any(const int32_t* acc, size_t rows, size_t count, const Requantize& how, T* out) {
  const size_t lanes = hn::Lanes(D32());
  if (count < lanes) return requantize_narrow(acc, rows, count, how, out);
  for (size_t i = 0; i < count; i += lanes) {
    const size_t first = std::min(i, count - lanes);
    Requantize here = how;
    if (how.bias != nullptr) here.bias += first;
    here.multiplier += first;
    here.shift += first;
    const RequantizeChannels<T> channels(here);
    for (size_t r = 0; r < rows; ++r) channels.apply(acc + first + r * count, out + first + r * count);
  }
}
#endif  // HWY_SCALAR || HWY_EMU128

void WidenU8(const uint8_t* in, size_t count, int32_t zero_point, int16_t* out) {
  widen_any(in, count, zero_point, out);
}
void WidenI8(const int8_t* in, size_t count, int32_t zero_point, int16_t* out) {
  widen_any(in, count, zero_point, out);
}
void RequantizeU8(const int32_t* acc, size_t rows, size_t count, const Requantize& how, uint8_t* out) {
  requantize_any(acc, rows, count, how, out);
}
void RequantizeI8(const int32_t* acc, size_t rows, size_t count, const Requantize& how, int8_t* out) {
  requantize_any(acc, rows, count, how, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace skillet::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skillet::gemm {

HWY_EXPORT(MatmulI16);
HWY_EXPORT(WidenU8);
HWY_EXPORT(WidenI8);
HWY_EXPORT(AddTaps);
HWY_EXPORT(DepthwisePixel);
HWY_EXPORT(RunStep);
HWY_EXPORT(MultiplyAdd);
HWY_EXPORT(Narrow);
HWY_EXPORT(RequantizeU8);
HWY_EXPORT(RequantizeI8);

void matmul_i16(const int16_t* a, size_t rows, size_t a_stride, const int16_t* b, size_t cols, size_t b_stride,
                size_t depth, int32_t* c, size_t c_stride) {
  HWY_DYNAMIC_DISPATCH(MatmulI16)(a, rows, a_stride, b, cols, b_stride, depth, c, c_stride);
}
void widen(const uint8_t* in, size_t count, int32_t zero_point, int16_t* out) {
  HWY_DYNAMIC_DISPATCH(WidenU8)(in, count, zero_point, out);
}
void widen(const int8_t* in, size_t count, int32_t zero_point, int16_t* out) {
  HWY_DYNAMIC_DISPATCH(WidenI8)(in, count, zero_point, out);
}
void add_taps(const uint8_t* in, const size_t* offsets, const int32_t* weights, size_t taps, size_t count,
              int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(AddTaps)(in, offsets, weights, taps, count, sums);
}
void depthwise_pixel(const int8_t* const* windows, const int8_t* weights, size_t weight_stride, size_t taps,
                     size_t count, int32_t* sums, int32_t* totals) {
  HWY_DYNAMIC_DISPATCH(DepthwisePixel)(windows, weights, weight_stride, taps, count, sums, totals);
}
void run_step(const Step& step, size_t count, int32_t* values) { HWY_DYNAMIC_DISPATCH(RunStep)(step, count, values); }
void multiply_add(const int32_t* sums, const int32_t* factors, const int32_t* windows, size_t window_step, size_t count,
                  int32_t* values) {
  HWY_DYNAMIC_DISPATCH(MultiplyAdd)(sums, factors, windows, window_step, count, values);
}
void narrow(const int32_t* in, size_t count, int32_t low, int32_t high, int32_t offset, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Narrow)(in, count, low, high, offset, out);
}
void requantize(const int32_t* acc, size_t rows, size_t count, const Requantize& how, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(RequantizeU8)(acc, rows, count, how, out);
}
void requantize(const int32_t* acc, size_t rows, size_t count, const Requantize& how, int8_t* out) {
  HWY_DYNAMIC_DISPATCH(RequantizeI8)(acc, rows, count, how, out);
}

}  // namespace skillet::gemm
#endif
