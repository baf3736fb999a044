#include "simd/byte_matrix.h"

#include <gtest/gtest.h>

#include <vector>

namespace skillet {
namespace {

constexpr uint8_t kUntouched = 0xA5;
constexpr size_t kSizes[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 79, 80, 81, 127, 128, 129, 145};

// Bytes that differ in neighbouring rows and columns.
std::vector<uint8_t> numbered(size_t size_bytes) {
  std::vector<uint8_t> bytes(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  return bytes;
}

// Strides with and without a gap.
std::vector<ByteMatrix> shapes(bool transposed) {
  std::vector<ByteMatrix> all;
  for (const size_t rows : kSizes) {
    for (const size_t cols : kSizes) {
      for (const size_t gap : {0, 5})
        all.push_back({rows, cols, cols + gap, (transposed ? rows : cols) + gap, static_cast<uint8_t>(gap * 16)});
    }
  }
  return all;
}

TEST(ByteMatrix, TransposesAndTouchesNothingElse) {
  for (const ByteMatrix& m : shapes(true)) {
    const std::vector<uint8_t> in = numbered((m.rows - 1) * m.stride_in + m.cols);
    std::vector<uint8_t> out(m.cols * m.stride_out + 16, kUntouched), expected = out;
    for (size_t r = 0; r < m.rows; ++r) {
      for (size_t c = 0; c < m.cols; ++c)
        expected[c * m.stride_out + r] = static_cast<uint8_t>(in[r * m.stride_in + c] ^ m.xor_byte);
    }
    transpose_bytes(in.data(), out.data(), m);
    ASSERT_EQ(out, expected) << m.rows << " x " << m.cols << ", strides " << m.stride_in << ", " << m.stride_out;
  }
}

TEST(ByteMatrix, CopiesAndTouchesNothingElse) {
  for (const ByteMatrix& m : shapes(false)) {
    const std::vector<uint8_t> in = numbered((m.rows - 1) * m.stride_in + m.cols);
    std::vector<uint8_t> out(m.rows * m.stride_out + 16, kUntouched), expected = out;
    for (size_t r = 0; r < m.rows; ++r) {
      for (size_t c = 0; c < m.cols; ++c)
        expected[r * m.stride_out + c] = static_cast<uint8_t>(in[r * m.stride_in + c] ^ m.xor_byte);
    }
    copy_bytes(in.data(), out.data(), m);
    ASSERT_EQ(out, expected) << m.rows << " x " << m.cols << ", strides " << m.stride_in << ", " << m.stride_out;
  }
}

}  // namespace
}  // namespace skillet
