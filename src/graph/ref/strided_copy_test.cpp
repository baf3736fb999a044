// Copies and broadcasts against explicit index arithmetic.
#include "graph/ref/strided_copy.h"

#include <gtest/gtest.h>

#include <numeric>

#include "graph/ref/broadcast.h"
#include "graph/ref/testing/definition.h"

namespace skillet::ref {
namespace {

TEST(StridedCopy, TransposesAndReturns) {
  std::vector<uint8_t> from(24), to(24), back(24);
  std::iota(from.begin(), from.end(), uint8_t{0});
  // [2][3][4] to [4][2][3]
  const StridedCopy copy({{4, 1, 6}, {2, 12, 3}, {3, 4, 1}}, 1);
  copy.run(from.data(), to.data());
  for (size_t a = 0; a < 2; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      for (size_t c = 0; c < 4; ++c) ASSERT_EQ(to[(c * 2 + a) * 3 + b], from[(a * 3 + b) * 4 + c]);
    }
  }
  copy.reversed().run(to.data(), back.data());
  EXPECT_EQ(back, from);
}

TEST(StridedCopy, NegativeStridesAndOffsets) {
  const std::vector<uint8_t> from = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<uint8_t> to(6, 99);
  StridedCopy({{2, -4, 2}}, 2, 6, 1).run(from.data(), to.data());
  EXPECT_EQ(to, (std::vector<uint8_t>{99, 6, 7, 2, 3, 99}));
}

TEST(StridedCopy, EmptyAxisCopiesNothing) {
  const uint8_t from = 1;
  uint8_t to = 2;
  StridedCopy({{3, 1, 1}, {0, 1, 1}}, 1).run(&from, &to);
  EXPECT_EQ(to, 2);
}

void check_broadcast(const ir::Shape& a, const ir::Shape& b, const ir::Shape& out, size_t row_elems) {
  const Broadcast broadcast(a, b);
  EXPECT_EQ(broadcast.row_elems(), row_elems);
  const auto index = [&](const ir::Shape& shape, size_t at) {
    size_t result = 0, stride = 1;
    for (int i = 0; i < out.rank(); ++i) {
      const auto size = static_cast<size_t>(out.back(i));
      if (shape.back(i) != 1) result += at % size * stride;
      stride *= static_cast<size_t>(shape.back(i));
      at /= size;
    }
    return result;
  };
  size_t next = 0;
  broadcast.for_each_row([&](size_t a_at, size_t a_step, size_t b_at, size_t b_step, size_t out_at) {
    ASSERT_EQ(out_at, next);
    next += broadcast.row_elems();
    for (size_t i = 0; i < broadcast.row_elems(); ++i) {
      ASSERT_EQ(a_at + i * a_step, index(a, out_at + i));
      ASSERT_EQ(b_at + i * b_step, index(b, out_at + i));
    }
  });
  EXPECT_EQ(next, static_cast<size_t>(out.elems()));
}

TEST(Broadcast, MatchesIndexArithmetic) {
  check_broadcast({2, 3, 4}, {2, 3, 4}, {2, 3, 4}, 24);
  check_broadcast({2, 3, 4}, {4}, {2, 3, 4}, 4);
  check_broadcast({2, 3, 4}, {}, {2, 3, 4}, 24);
  check_broadcast({2, 1, 4}, {3, 1}, {2, 3, 4}, 4);
  check_broadcast({1, 3, 1, 5}, {2, 1, 4, 1}, {2, 3, 4, 5}, 5);
  check_broadcast({}, {}, {}, 1);
}

// Blocks of a single row, and of a single column next to padding.
TEST(StridedCopy, OfBlocksOfASingleRowOrColumn) {
  for (const char* text : {
           R"(tensor 0 "in" int32 1x2x3x1 const=[1 2 3 4 5 6]
tensor 1 "block" int32 2 const=[2 2]
tensor 2 "pads" int32 2x2 const=[0 0 0 1]
tensor 3 "out" int32 4x1x2x1 const=[1 3 2 0 4 6 5 0]
inputs 0
outputs 3
op 0 SPACE_TO_BATCH_ND in=[0 1 2] out=[3])",
           R"(tensor 0 "in" int32 4x1x2x1 const=[1 3 2 9 4 6 5 9]
tensor 1 "block" int32 2 const=[2 2]
tensor 2 "crops" int32 2x2 const=[0 0 0 1]
tensor 3 "out" int32 1x2x3x1 const=[1 2 3 4 5 6]
inputs 0
outputs 3
op 0 BATCH_TO_SPACE_ND in=[0 1 2] out=[3])",
       })
    expect_values(text);
}

}  // namespace
}  // namespace skillet::ref
