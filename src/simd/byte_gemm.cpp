// AVX-512 VNNI. Panels of 16 columns; sums of a block of rows and several panels stay in registers.
#include "simd/byte_gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/leaked.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define SKILLET_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
// For loops over an array that should be in registers, which requires constant indices.
#if defined(__clang__)
#define SKILLET_UNROLL _Pragma("unroll")
#else
#define SKILLET_UNROLL _Pragma("GCC unroll 8")
#endif
#endif

namespace skillet::byte_gemm {
namespace {

constexpr size_t kPanel = 16, kPanels = 4, kRows = 6;

size_t quads(size_t depth) { return (depth + kDepthAlign - 1) / kDepthAlign; }

}  // namespace

std::vector<int8_t> pack(const int8_t* b, size_t cols, size_t depth) {
  const size_t panels = (cols + kPanel - 1) / kPanel;
  std::vector<int8_t> packed(panels * quads(depth) * kPanel * kDepthAlign);
  for (size_t n = 0; n < cols; ++n) {
    int8_t* panel = packed.data() + n / kPanel * quads(depth) * kPanel * kDepthAlign;
    for (size_t k = 0; k < depth; ++k) {
      panel[(k / kDepthAlign * kPanel + n % kPanel) * kDepthAlign + k % kDepthAlign] = b[n * depth + k];
    }
  }
  return packed;
}

#if defined(__x86_64__)
namespace {

struct Operands {
  const uint8_t* a;
  size_t a_stride;
  const int8_t* b;
  size_t panel_bytes, quads;
  const int32_t* row_start;
  int32_t* c;
  size_t c_stride;
  size_t cols;  // of this panel and all panels before it
};

template <size_t kBlockRows, size_t kBlockPanels>
SKILLET_VNNI void multiply_block(const Operands& o) {
  __m512i sums[kBlockRows][kBlockPanels];
  SKILLET_UNROLL
  for (size_t r = 0; r < kBlockRows; ++r) {
    SKILLET_UNROLL
    for (size_t p = 0; p < kBlockPanels; ++p) sums[r][p] = _mm512_set1_epi32(o.row_start[r]);
  }
  for (size_t q = 0; q < o.quads; ++q) {
    __m512i column[kBlockPanels];
    SKILLET_UNROLL
    for (size_t p = 0; p < kBlockPanels; ++p) column[p] = _mm512_loadu_si512(o.b + p * o.panel_bytes + q * 64);
    SKILLET_UNROLL
    for (size_t r = 0; r < kBlockRows; ++r) {
      int32_t four = 0;
      std::memcpy(&four, o.a + r * o.a_stride + q * kDepthAlign, sizeof four);
      const __m512i row = _mm512_set1_epi32(four);
      SKILLET_UNROLL
      for (size_t p = 0; p < kBlockPanels; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], row, column[p]);
    }
  }
  SKILLET_UNROLL
  for (size_t p = 0; p < kBlockPanels; ++p) {
    const size_t left = o.cols - p * kPanel;
    const auto mask = static_cast<__mmask16>(left >= kPanel ? 0xffffU : (1U << left) - 1U);
    SKILLET_UNROLL
    for (size_t r = 0; r < kBlockRows; ++r)
      _mm512_mask_storeu_epi32(o.c + r * o.c_stride + p * kPanel, mask, sums[r][p]);
  }
}

template <size_t kBlockRows>
void multiply_rows(const Operands& o) {
  switch ((o.cols + kPanel - 1) / kPanel) {
    case 1: return multiply_block<kBlockRows, 1>(o);
    case 2: return multiply_block<kBlockRows, 2>(o);
    case 3: return multiply_block<kBlockRows, 3>(o);
    default: return multiply_block<kBlockRows, kPanels>(o);
  }
}

SKILLET_VNNI int32_t vector_sum(const uint8_t* values, size_t count) {
  __m512i sums = _mm512_setzero_si512();
  size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_loadu_si512(values + i), _mm512_setzero_si512()));
  }
  const auto rest = static_cast<__mmask64>((uint64_t{1} << (count - i)) - 1);
  sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_maskz_loadu_epi8(rest, values + i), _mm512_setzero_si512()));
  alignas(64) std::array<int64_t, 8> parts;
  _mm512_store_si512(parts.data(), sums);
  return static_cast<int32_t>(std::accumulate(parts.begin(), parts.end(), int64_t{0}));
}

}  // namespace

bool available() {
  return leaked([] {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
  });
}

int32_t sum(const uint8_t* values, size_t count) { return vector_sum(values, count); }

void matmul(const uint8_t* a, size_t rows, size_t a_stride, const std::vector<int8_t>& packed, size_t cols,
            size_t depth, const int32_t* row_start, int32_t* c, size_t c_stride) {
  const size_t panel_bytes = quads(depth) * kPanel * kDepthAlign;
  for (size_t n = 0; n < cols; n += kPanel * kPanels) {
    Operands o{.a_stride = a_stride,
               .b = packed.data() + n / kPanel * panel_bytes,
               .panel_bytes = panel_bytes,
               .quads = quads(depth),
               .c_stride = c_stride,
               .cols = std::min(cols - n, kPanel * kPanels)};
    for (size_t r = 0; r < rows;) {
      o.a = a + r * a_stride;
      o.row_start = row_start + r;
      o.c = c + r * c_stride + n;
      const bool block = r + kRows <= rows;
      block ? multiply_rows<kRows>(o) : multiply_rows<1>(o);
      r += block ? kRows : 1;
    }
  }
}
#else
bool available() { return false; }
int32_t sum(const uint8_t* values, size_t count) { return std::accumulate(values, values + count, int32_t{0}); }
void matmul(const uint8_t*, size_t, size_t, const std::vector<int8_t>&, size_t, size_t, const int32_t*, int32_t*,
            size_t) {}
#endif

}  // namespace skillet::byte_gemm
