// Compiled once per instruction set, chosen at run time. Never reads `out`: memory that is shared with a device may be
// slow to read. Vectors of 16 bytes: longer ones would not make memory faster.
#include "simd/byte_matrix.h"

#include <algorithm>
#include <cstring>

// Vectors of unknown size cannot be array elements.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/byte_matrix.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skillet::byte_matrix {
namespace HWY_NAMESPACE {

void xor_row(const uint8_t* in, uint8_t* out, size_t count, uint8_t value) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<uint8_t, 16> d;
  const auto mask = hn::Set(d, value);
  for (; i + 16 <= count; i += 16) hn::StoreU(hn::Xor(hn::LoadU(d, in + i), mask), d, out + i);
#endif
  for (; i < count; ++i) out[i] = static_cast<uint8_t>(in[i] ^ value);
}

#if HWY_TARGET != HWY_SCALAR
// For rows of fewer than 16 bytes without gaps: each store overlaps the next row, which is written after it. Returns
// the number of rows that can be written so.
size_t copy_narrow(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<uint8_t, 16> d;
  const auto mask = hn::Set(d, m.xor_byte);
  if (m.cols >= 16 || m.stride_out != m.cols || m.stride_in < m.cols) return 0;
  const size_t bytes_in = (m.rows - 1) * m.stride_in + m.cols, bytes_out = m.rows * m.cols;
  const size_t stride_in = m.stride_in, cols = m.cols;  // kept in registers across stores
  size_t r = 0;
  for (; r * stride_in + 16 <= bytes_in && r * cols + 16 <= bytes_out; ++r)
    hn::StoreU(hn::Xor(hn::LoadU(d, in + r * stride_in), mask), d, out + r * cols);
  return r;
}
#else
size_t copy_narrow(const uint8_t*, uint8_t*, const ByteMatrix&) { return 0; }
#endif

void Widen(const uint8_t* in, uint8_t* out, const ByteMatrix& m, uint8_t fill) {
  size_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<uint8_t, 16> d;
  const auto mask = hn::Set(d, m.xor_byte), filled = hn::Set(d, fill);
  const auto present = hn::FirstN(d, m.cols);
  const size_t bytes = (m.rows - 1) * m.stride_in + m.cols;
  const size_t stride_in = m.stride_in, stride_out = m.stride_out;  // kept in registers across stores
  for (; r * stride_in + 16 <= bytes; ++r) {
    const auto row = hn::Xor(hn::LoadU(d, in + r * stride_in), mask);
    hn::StoreU(hn::IfThenElse(present, row, filled), d, out + r * stride_out);
  }
#endif
  for (; r < m.rows; ++r) {
    uint8_t* const row = out + r * m.stride_out;
    for (size_t c = 0; c < 16; ++c)
      row[c] = c < m.cols ? static_cast<uint8_t>(in[r * m.stride_in + c] ^ m.xor_byte) : fill;
  }
}

#if HWY_TARGET != HWY_SCALAR
// Appends the second row to the first with a byte shuffle, because the offset is only known at run time.
size_t join_vectors(const uint8_t* in, uint8_t* out, const ByteMatrix& m, size_t step_in, uint8_t fill) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<uint8_t, 16> d;
  alignas(16) uint8_t places[16];
  for (size_t i = 0; i < 16; ++i) places[i] = static_cast<uint8_t>(i < m.cols ? 0 : (i - m.cols) % 16);
  const auto moved = hn::Load(d, places);
  const auto mask = hn::Set(d, m.xor_byte), filled = hn::Set(d, fill);
  const auto first = hn::FirstN(d, m.cols), present = hn::FirstN(d, 2 * m.cols);
  const size_t bytes = step_in + (m.rows - 1) * m.stride_in + m.cols;
  const size_t stride_in = m.stride_in, stride_out = m.stride_out;  // kept in registers across stores
  size_t r = 0;
  for (; step_in + r * stride_in + 16 <= bytes && r < m.rows; ++r) {
    const auto upper = hn::LoadU(d, in + r * stride_in);
    const auto lower = hn::TableLookupBytes(hn::LoadU(d, in + step_in + r * stride_in), moved);
    const auto both = hn::Xor(hn::IfThenElse(first, upper, lower), mask);
    hn::StoreU(hn::IfThenElse(present, both, filled), d, out + r * stride_out);
  }
  return r;
}
#else
size_t join_vectors(const uint8_t*, uint8_t*, const ByteMatrix&, size_t, uint8_t) { return 0; }
#endif

void Join(const uint8_t* in, uint8_t* out, const ByteMatrix& m, size_t step_in, uint8_t fill) {
  for (size_t r = join_vectors(in, out, m, step_in, fill); r < m.rows; ++r) {
    uint8_t* const row = out + r * m.stride_out;
    const uint8_t* const from = in + r * m.stride_in;
    for (size_t c = 0; c < m.cols; ++c) {
      row[c] = static_cast<uint8_t>(from[c] ^ m.xor_byte);
      row[m.cols + c] = static_cast<uint8_t>(from[step_in + c] ^ m.xor_byte);
    }
    for (size_t c = 2 * m.cols; c < 16; ++c) row[c] = fill;
  }
}

#if HWY_TARGET != HWY_SCALAR
// Rows of 16 bytes of kCount matrices, alternating: one vector each.
template <size_t kCount>
HWY_INLINE void copy_vectors(const uint8_t* in, uint8_t* out, const ByteMatrix& m, size_t step_in, size_t step_out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<uint8_t, 16> d;
  const auto mask = hn::Set(d, m.xor_byte);
  const size_t rows = m.rows, stride_in = m.stride_in, stride_out = m.stride_out;  // kept in registers across stores
  for (size_t r = 0; r < rows; ++r) {
    const uint8_t* const from = in + r * stride_in;
    uint8_t* const to = out + r * stride_out;
    for (size_t i = 0; i < kCount; ++i)
      hn::StoreU(hn::Xor(hn::LoadU(d, from + i * step_in), mask), d, to + i * step_out);
  }
}

void CopyVectors(const uint8_t* in, uint8_t* out, const ByteMatrix& m, const ByteMatrices& all) {
  constexpr size_t kTogether = 4;  // a cache line on the side where they are adjacent
  size_t i = 0;
  for (; i + kTogether <= all.count; i += kTogether)
    copy_vectors<kTogether>(in + i * all.step_in, out + i * all.step_out, m, all.step_in, all.step_out);
  for (; i < all.count; ++i) copy_vectors<1>(in + i * all.step_in, out + i * all.step_out, m, 0, 0);
}
#endif

void Copy(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  for (size_t r = copy_narrow(in, out, m); r < m.rows; ++r)
    xor_row(in + r * m.stride_in, out + r * m.stride_out, m.cols, m.xor_byte);
}

#if HWY_TARGET == HWY_SCALAR
void CopyVectors(const uint8_t* in, uint8_t* out, const ByteMatrix& m, const ByteMatrices& all) {
  for (size_t i = 0; i < all.count; ++i) Copy(in + i * all.step_in, out + i * all.step_out, m);
}
#endif

void transpose_plain(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  for (size_t c = 0; c < m.cols; ++c) {
    for (size_t r = 0; r < m.rows; ++r)
      out[c * m.stride_out + r] = static_cast<uint8_t>(in[r * m.stride_in + c] ^ m.xor_byte);
  }
}

#if HWY_TARGET == HWY_SCALAR
void Transpose(const uint8_t* in, uint8_t* out, const ByteMatrix& m) { transpose_plain(in, out, m); }
#else

constexpr size_t kSide = 16;

// Transposes 16 x 16 bytes by interleaving row i with row i + 8 four times. Loads `rows` rows of 16 bytes (the others
// are 0) and stores the first `cols` rows of the result, 16 bytes each.
HWY_INLINE void transpose_block(const uint8_t* in, uint8_t* out, const ByteMatrix& m, size_t rows, size_t cols) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<uint8_t, kSide> d;
  using V = hn::Vec<decltype(d)>;
  V a[kSide], b[kSide];
  for (size_t i = 0; i < kSide; ++i) a[i] = i < rows ? hn::LoadU(d, in + i * m.stride_in) : hn::Zero(d);
  const auto round = [&](const V* from, V* to) {
    for (size_t i = 0; i < kSide / 2; ++i) {
      to[2 * i] = hn::InterleaveLower(d, from[i], from[i + kSide / 2]);
      to[2 * i + 1] = hn::InterleaveUpper(d, from[i], from[i + kSide / 2]);
    }
  };
  round(a, b);
  round(b, a);
  round(a, b);
  round(b, a);
  const V mask = hn::Set(d, m.xor_byte);
  for (size_t i = 0; i < kSide; ++i) {
    if (i < cols) hn::StoreU(hn::Xor(a[i], mask), d, out + i * m.stride_out);
  }
}

// Start of the next block; the last one may overlap its neighbour and writes the same bytes again.
size_t next_block(size_t at, size_t size) {
  return at + kSide >= size ? size : (at + 2 * kSide > size ? size - kSide : at + kSide);
}

// Some columns at a time, so that cache lines are complete on both sides before they are evicted.
void transpose_wide(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  constexpr size_t kColumns = 64;
  for (size_t first = 0; first < m.cols; first += kColumns) {
    const size_t end = std::min(first + kColumns, m.cols), start = std::min(first, m.cols - kSide);
    for (size_t r = 0; r < m.rows; r = next_block(r, m.rows)) {
      for (size_t c = start; c < end; c = next_block(c, m.cols))
        transpose_block(in + r * m.stride_in + c, out + c * m.stride_out + r, m, kSide, kSide);
    }
  }
}

// For fewer than 16 columns: loads overlap the next rows while these are inside; the rest is done byte by byte.
void transpose_narrow(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  const size_t bytes = (m.rows - 1) * m.stride_in + m.cols;
  size_t r = 0;
  for (; r + kSide <= m.rows && (r + kSide - 1) * m.stride_in + kSide <= bytes; r += kSide)
    transpose_block(in + r * m.stride_in, out + r, m, kSide, m.cols);
  ByteMatrix rest = m;
  rest.rows = m.rows - r;
  transpose_plain(in + r * m.stride_in, out + r, rest);
}

// For fewer than 16 rows and a result without gaps: each store overlaps the next row, which is written after it.
void transpose_flat(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  const size_t bytes = m.cols * m.rows;
  size_t c = 0;
  for (; c + kSide <= m.cols && (c + kSide - 1) * m.rows + kSide <= bytes; c += kSide)
    transpose_block(in + c, out + c * m.stride_out, m, m.rows, kSide);
  ByteMatrix rest = m;
  rest.cols = m.cols - c;
  transpose_plain(in + c, out + c * m.stride_out, rest);
}

void Transpose(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  if (m.rows >= kSide && m.cols >= kSide) return transpose_wide(in, out, m);
  if (m.rows >= kSide) return transpose_narrow(in, out, m);
  if (m.cols >= kSide && m.stride_out == m.rows) return transpose_flat(in, out, m);
  transpose_plain(in, out, m);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace skillet::byte_matrix
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skillet {
namespace byte_matrix {
HWY_EXPORT(Copy);
HWY_EXPORT(CopyVectors);
HWY_EXPORT(Widen);
HWY_EXPORT(Join);
HWY_EXPORT(Transpose);
// Calls the best version; in this namespace, because with one instruction set the macro is a plain call.
void copy(const uint8_t* in, uint8_t* out, const ByteMatrix& m) { HWY_DYNAMIC_DISPATCH(Copy)(in, out, m); }
void copy_vectors(const uint8_t* in, uint8_t* out, const ByteMatrix& m, const ByteMatrices& all) {
  HWY_DYNAMIC_DISPATCH(CopyVectors)(in, out, m, all);
}
void widen(const uint8_t* in, uint8_t* out, const ByteMatrix& m, uint8_t fill) {
  HWY_DYNAMIC_DISPATCH(Widen)(in, out, m, fill);
}
void join(const uint8_t* in, uint8_t* out, const ByteMatrix& m, size_t step_in, uint8_t fill) {
  HWY_DYNAMIC_DISPATCH(Join)(in, out, m, step_in, fill);
}
void transpose(const uint8_t* in, uint8_t* out, const ByteMatrix& m) { HWY_DYNAMIC_DISPATCH(Transpose)(in, out, m); }
}  // namespace byte_matrix

constexpr size_t kVectorBytes = 16;
constexpr size_t kShortRow = 64;  // memcpy is too slow for shorter rows

void copy_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  if (m.rows == 0 || m.cols == 0) return;
  if (m.rows > 1 && m.stride_in == m.cols && m.stride_out == m.cols) {
    const size_t all = m.rows * m.cols;
    return copy_bytes(in, out, {.rows = 1, .cols = all, .stride_in = all, .stride_out = all, .xor_byte = m.xor_byte});
  }
  if (m.cols == kVectorBytes) return byte_matrix::copy_vectors(in, out, m, {.count = 1});
  if (m.xor_byte != 0 || m.cols <= kShortRow) return byte_matrix::copy(in, out, m);
  for (size_t r = 0; r < m.rows; ++r) std::memcpy(out + r * m.stride_out, in + r * m.stride_in, m.cols);
}

void copy_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m, const ByteMatrices& all) {
  if (m.cols == kVectorBytes) return byte_matrix::copy_vectors(in, out, m, all);
  for (size_t i = 0; i < all.count; ++i) copy_bytes(in + i * all.step_in, out + i * all.step_out, m);
}

void widen_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m, uint8_t fill) {
  if (m.rows != 0 && m.cols != 0) byte_matrix::widen(in, out, m, fill);
}

void join_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m, size_t step_in, uint8_t fill) {
  if (m.rows != 0 && m.cols != 0) byte_matrix::join(in, out, m, step_in, fill);
}

void transpose_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m) {
  if (m.rows != 0 && m.cols != 0) byte_matrix::transpose(in, out, m);
}

}  // namespace skillet
#endif
