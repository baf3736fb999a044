// Moves bytes between matrices of different strides: copies and transposes, with an optional XOR.
// Called by program/layout.
// Must not know: tensors, devices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace skillet {

// `rows` x `cols` bytes; row r starts at data + r * stride (bytes). The two matrices do not overlap.
struct ByteMatrix {
  size_t rows = 0, cols = 0;
  size_t stride_in = 0, stride_out = 0;
  uint8_t xor_byte = 0;
};

// Matrices of one shape, each `step` bytes after the one before.
struct ByteMatrices {
  size_t count = 0, step_in = 0, step_out = 0;
};

// out[r * stride_out + c] = in[r * stride_in + c] ^ xor_byte
void copy_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m);
// The same for several matrices: if rows are short, row by row of all matrices, so that neighbours share cache lines.
void copy_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m, const ByteMatrices& all);
// Copies rows of fewer than 16 bytes into rows of 16, padded with `fill`; stride_out >= 16.
void widen_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m, uint8_t fill);
// Copies two matrices side by side: row r of the second one, which begins `step_in` bytes after the first, follows row
// r of the first one; 2 * cols <= 16. Rows of the first matrix end before step_in, and both are readable from `in` on.
void join_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m, size_t step_in, uint8_t fill);
// out[c * stride_out + r] = in[r * stride_in + c] ^ xor_byte
void transpose_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m);

}  // namespace skillet
