// Channels sorted by their scales: the same results bit by bit, and only if all their readers can be reordered.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/passes/testing/plain_drivers.h"

namespace skillet::passes {
namespace {

constexpr int kChannels = 8, kOfAShift = 4;

std::string scales(float largest_by_smallest) {
  std::string out;
  for (int c = 0; c < kChannels; ++c)
    out += fmt::format("{}{}", c == 0 ? "" : " ",
                       0.01F * (c * 3 % kChannels == 0 ? largest_by_smallest : 1.0F + static_cast<float>(c) / 10));
  return "[" + out + "]";
}

// CONV_2D to 8 channels, DEPTHWISE_CONV_2D, CONV_2D, and other readers of the first two.
ir::Graph network(float apart, const char* outputs, const char* more = "") {
  const std::string own = scales(apart);
  const std::string text = fmt::format(
      "graph \"g\"\n"
      "tensor 0 \"in\" int8 1x5x6x3 scale=0.02 zero=3\n"
      "tensor 1 \"w\" int8 8x1x1x3 scale={0} zero=0 axis=0 const=random:1\n"
      "tensor 2 \"b\" int32 8 const=random:2\n"
      "tensor 3 \"a\" int8 1x5x6x8 scale=0.2 zero=-4\n"
      "tensor 4 \"d\" int8 1x3x3x8 scale={0} zero=0 axis=3 const=random:3\n"
      "tensor 5 \"c\" int8 1x5x6x8 scale=0.3 zero=5\n"
      "tensor 6 \"v\" int8 2x3x3x8 scale=0.01 zero=0 const=random:4\n"
      "tensor 7 \"out\" int8 1x5x6x2 scale=0.5 zero=0\n"
      "tensor 8 \"sum\" int8 1x5x6x8 scale=0.5 zero=0\n"
      "inputs 0\noutputs {1}\n"
      "op 0 CONV_2D in=[0 1 2] out=[3]\n"
      "op 1 DEPTHWISE_CONV_2D in=[3 4 -] out=[5]\n"
      "op 2 CONV_2D in=[5 6 -] out=[7]\n{2}",
      own, outputs, more);
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return std::move(*graph);
}

struct Network {
  const char* what;
  ir::Graph graph;
  bool is_sorted = true;
  int32_t of_a_shift = kOfAShift;
  uint64_t constants_max = UINT64_MAX;
};

TEST(SortChannels, KeepsResults) {
  const Network rows[] = {
      {"through a depthwise convolution", network(100, "7")},
      {"scales are alike", network(2, "7"), false},
      {"the graph returns a tensor", network(100, "7 3"), false},
      {"the graph returns what has its channels", network(100, "7 5"), false},
      {"another operation reads it", network(100, "7 8", "op 3 ADD in=[3 5] out=[8]\n"), false},
      {"any may have a shift", network(100, "7"), false, 0},
      {"as many channels as have one", network(100, "7"), false, kChannels},
      {"more constants than the model may have", network(100, "7"), false, kOfAShift, 0},
  };
  for (const Network& row : rows) {
    SCOPED_TRACE(row.what);
    ir::Graph graph = row.graph;
    Target target{.driver = &kPlain, .chip = {}};
    target.chip.channels_of_a_shift = row.of_a_shift;
    target.constants_max = row.constants_max;
    sort_channels(graph, target);
    ASSERT_TRUE(ir::verify(graph).ok());
    const std::vector<float>& first = graph.tensor(graph.op(0).inputs[1]).quant.scales;
    EXPECT_EQ(std::ranges::is_sorted(first, std::greater<>()), row.is_sorted);
    EXPECT_EQ(ir::print(graph) == ir::print(row.graph), !row.is_sorted);
    for (const uint32_t seed : {1U, 2U}) {
      const auto before = results(row.graph, seed), after = results(graph, seed);
      ASSERT_TRUE(before && after);
      EXPECT_EQ(*before, *after);
    }
  }
}

}  // namespace
}  // namespace skillet::passes
