// Moves bytes between matrices of different strides: copies and transposes, with an XOR on the way.
// Called by driver/layout.
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

// out[r * stride_out + c] = in[r * stride_in + c] ^ xor_byte
void copy_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m);
// out[c * stride_out + r] = in[r * stride_in + c] ^ xor_byte
void transpose_bytes(const uint8_t* in, uint8_t* out, const ByteMatrix& m);

}  // namespace skillet
