// Which runs of operations are cut into stripes: those whose tensors do not fit in on-chip memory.
#include "npus/ethosu/compiler/cascade.h"

#include <gtest/gtest.h>

#include <numeric>

#include "npus/ethosu/compiler/lower.h"

namespace skillet::npus::ethosu {
namespace {

// Two convolutions over 96 rows with `width` pixels.
std::vector<Operation> cascaded(int width) {
  const auto graph = ir::parse(fmt::format(R"(graph "g"
tensor 0 "in" int8 1x96x{0}x16 scale=0.5 zero=0
tensor 1 "w" int8 16x1x1x16 scale=0.5 zero=0 const=zeros
tensor 2 "between" int8 1x96x{0}x16 scale=0.5 zero=0
tensor 3 "v" int8 16x3x3x16 scale=0.5 zero=0 const=zeros
tensor 4 "out" int8 1x96x{0}x16 scale=0.5 zero=0
inputs 0
outputs 4
op 0 CONV_2D in=[0 1 -] out=[2]
op 1 CONV_2D in=[2 3 -] out=[4]
)",
                                           width));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  std::vector<Operation> operations;
  for (const ir::OpId op : {0, 1}) {
    Lowered lowered = lower(*graph, op);
    EXPECT_EQ(lowered.operations.size(), 1U) << lowered.support.reason;
    operations.push_back(std::move(lowered.operations.at(0)));
  }
  std::vector<ir::TensorId> same_as(graph->tensors.size());
  std::iota(same_as.begin(), same_as.end(), 0);
  return cascade(*hw::find_chip("imx93"), *graph, std::move(operations), same_as).operations;
}

// 384 KiB of both results: 96 rows of 128 pixels, each of 16 bytes, twice.
TEST(EthosuCascade, IsOfWhatHasNoRoomOnTheChip) {
  EXPECT_EQ(cascaded(128).size(), 2U);
  const std::vector<Operation> cut = cascaded(129);
  ASSERT_GT(cut.size(), 2U);
  uint32_t rows = 0;
  for (const Operation& one : cut)
    if (one.output.tensor == 4) rows += one.output.height;
  EXPECT_EQ(rows, 96U);
}

}  // namespace
}  // namespace skillet::npus::ethosu
