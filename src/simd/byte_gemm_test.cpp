// The dot products of bytes equal a plain loop: all tails of each dimension, the extreme values of both operands.
#include "simd/byte_gemm.h"

#include <gtest/gtest.h>

#include <random>

#include "base/int_math.h"

namespace skillet::byte_gemm {
namespace {

enum class Values : uint8_t { random, extreme, largest };

uint8_t value(std::mt19937& random, Values values) {
  if (values == Values::largest) return 255;
  return static_cast<uint8_t>(values == Values::extreme ? random() % 2 * 255 : random());
}

void check(std::mt19937& random, size_t rows, size_t cols, size_t depth, Values values) {
  const size_t a_stride = align_up(depth, kDepthAlign) + random() % 9, c_stride = cols + random() % 3;
  std::vector<uint8_t> a(rows * a_stride);  // elements beyond the depth are not 0, and must not affect results
  std::vector<int8_t> b(cols * depth);
  std::vector<int32_t> start(rows), c(rows * c_stride, 77);
  for (uint8_t& x : a) x = value(random, values);
  for (int8_t& x : b) x = values == Values::largest ? -128 : static_cast<int8_t>(value(random, values) ^ 0x80);
  for (int32_t& x : start) x = static_cast<int32_t>(random());
  matmul(a.data(), rows, a_stride, pack(b.data(), cols, depth), cols, depth, start.data(), c.data(), c_stride);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t n = 0; n < c_stride; ++n) {
      auto sum = static_cast<uint32_t>(n < cols ? start[r] : 77);  // the gap between rows is not written
      for (size_t k = 0; n < cols && k < depth; ++k)
        sum += static_cast<uint32_t>(a[r * a_stride + k] * b[n * depth + k]);
      ASSERT_EQ(c[r * c_stride + n], static_cast<int32_t>(sum)) << rows << "x" << cols << "x" << depth;
    }
  }
}

class ByteGemm : public testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << "this CPU has no dot products of bytes";
  }
};

TEST_F(ByteGemm, MatmulEqualsPlainLoop) {
  std::mt19937 random(1);
  for (const Values values : {Values::random, Values::extreme, Values::largest}) {
    for (size_t rows = 1; rows <= 13; ++rows) {
      for (size_t cols = 1; cols <= 81; cols += 1 + random() % 3) check(random, rows, cols, 1 + random() % 40, values);
    }
    for (size_t depth = 1; depth <= 70; ++depth) check(random, 7, 17, depth, values);
    check(random, 3, 65, 5000, values);
  }
}

// Products and sums of four are exact: no instruction saturates intermediate results.
TEST_F(ByteGemm, NothingSaturates) {
  std::mt19937 random(2);
  check(random, 1, 16, 4, Values::largest);
  check(random, 6, 64, 65536, Values::largest);
}

TEST_F(ByteGemm, Sum) {
  std::mt19937 random(3);
  for (size_t count = 0; count < 300; ++count) {
    std::vector<uint8_t> values(count);
    int32_t expected = 0;
    for (uint8_t& x : values) expected += x = count % 2 == 0 ? 255 : static_cast<uint8_t>(random());
    ASSERT_EQ(sum(values.data(), count), expected) << count;
  }
}

}  // namespace
}  // namespace skillet::byte_gemm
