// Matrix multiply of bytes, four pairs at a time, on CPUs that have an instruction for it.
// Called by the convolutions of graph/ref/, which have an alternative without it (simd/gemm.h).
// Must not know: tensors, layouts, chips.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace skillet::byte_gemm {

// The functions below may be called only if this returns true.
bool available();

// Rows of the left matrix have a multiple of this many elements; those beyond the depth do not affect results.
constexpr size_t kDepthAlign = 4;

// The right matrix, [cols][depth], reordered for matmul().
std::vector<int8_t> pack(const int8_t* b, size_t cols, size_t depth);

// c[r][n] = row_start[r] + sum over k of a[r][k] * b[n][k], modulo 2^32. Strides are in elements; `depth` as for
// pack(). Each row of `a` must be readable up to the next multiple of kDepthAlign.
void matmul(const uint8_t* a, size_t rows, size_t a_stride, const std::vector<int8_t>& packed, size_t cols,
            size_t depth, const int32_t* row_start, int32_t* c, size_t c_stride);

// The sum of `count` bytes.
int32_t sum(const uint8_t* values, size_t count);

}  // namespace skillet::byte_gemm
