// Rows of segments, and missing segments.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "graph/ir/graph.h"
#include "graph/ref/ref.h"

namespace skillet::ref {
namespace {

// The sums, or the error.
std::string segment_sum(const std::array<int32_t, 3>& segments) {
  const auto graph = ir::parse(
      "graph \"\"\ntensor 0 \"rows\" float32 3x2\ntensor 1 \"segments\" int32 3\ntensor 2 \"sums\" float32 2x2\n"
      "op 0 SEGMENT_SUM in=[0 1] out=[2]\ninputs 0 1\noutputs 2\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  if (!graph.ok()) return "";
  auto made = Interpreter::create(*graph);
  EXPECT_TRUE(made.ok()) << made.error().message;
  if (!made.ok()) return "";
  const std::array<float, 6> rows = {1, 2, 3, 4, 5, 6};
  std::memcpy(made->tensor(0).data(), rows.data(), sizeof rows);
  std::memcpy(made->tensor(1).data(), segments.data(), sizeof segments);
  if (const auto ran = made->run(); !ran.ok()) return ran.error().message;
  std::array<float, 4> sums{};
  std::memcpy(sums.data(), made->tensor(2).data(), sizeof sums);
  return fmt::format("{} {} {} {}", sums[0], sums[1], sums[2], sums[3]);
}

TEST(SegmentSum, HasARowForEachSegment) {
  EXPECT_EQ(segment_sum({0, 0, 1}), "4 6 5 6");
  EXPECT_EQ(segment_sum({0, 1, 1}), "1 2 8 10");
  EXPECT_NE(segment_sum({0, 0, 0}).find("1 segments, but the output has 2"), std::string::npos)
      << segment_sum({0, 0, 0});
  EXPECT_NE(segment_sum({0, 1, 0}).find("segment 0 after 1"), std::string::npos);
}

}  // namespace
}  // namespace skillet::ref
