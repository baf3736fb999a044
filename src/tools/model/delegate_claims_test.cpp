// Tests which operations `skillet check --delegate` leaves to the host.
#include "tools/model/delegate_claims.h"

#include <gtest/gtest.h>

#include "compile/report.h"
#include "graph/ir/graph.h"
#include "graph/ref/ref.h"

namespace skillet::tools {
namespace {

ir::Graph two_convolutions() {
  return ir::parse(R"(graph "two"
tensor 0 "in" uint8 1x32x32x16 scale=0.05 zero=128
tensor 1 "w" uint8 16x3x3x16 scale=0.02 zero=128 const=random:1
tensor 2 "between" uint8 1x32x32x16 scale=0.5 zero=120
tensor 3 "out" uint8 1x32x32x16 scale=0.5 zero=120
inputs 0
outputs 3
op 0 CONV_2D in=[0 1] out=[2] padding=same
op 1 CONV_2D in=[2 1] out=[3] padding=same
)")
      .value();
}

// The delegate does not read fields that an operation's version lacks, so the operation stays with the host; its
// neighbours are claimed.
TEST(DelegateClaims, WhatIsLeftToTheHostIsNotClaimed) {
  const ir::Graph graph = two_convolutions();
  const auto target = runtime::open_target("sim:a311d");
  ASSERT_TRUE(target.ok()) << target.error().message;
  runtime::SessionOptions session;
  session.partition = compile::PartitionBy::all;
  const std::string why = "op version 1 has no field, but 1 is given";
  for (const LeftToHost& left :
       {LeftToHost(), LeftToHost{{0, why}}, LeftToHost{{1, why}}, LeftToHost{{0, why}, {1, why}}}) {
    const auto claims = delegate_claims(*target, graph, session, left);
    ASSERT_TRUE(claims.ok()) << claims.error().message;
    for (const ir::OpId op : {0, 1})
      EXPECT_EQ(claims->why_not[static_cast<size_t>(op)], left.contains(op) ? why : "") << op;
    EXPECT_EQ(claims->partitions, left.size() == 2 ? 0U : 1U);
  }
}

// Limits are read as the delegate reads them.
TEST(DelegateClaims, LimitsOfTheEnvironmentCount) {
  const auto target = runtime::open_target("sim:a311d").value();
  runtime::SessionOptions session;
  session.partition = compile::PartitionBy::all;
  const ir::Graph graph = two_convolutions();
  EXPECT_EQ(delegate_claims(target, graph, session)->partitions, 1U);
  ::setenv("SKILLET_MIN_NODES_PER_PARTITION", "3", 1);
  const auto few = delegate_claims(target, graph, session);
  ::unsetenv("SKILLET_MIN_NODES_PER_PARTITION");
  EXPECT_EQ(few->partitions, 0U);
  EXPECT_NE(few->why_not[0].find("fewer than min_nodes_per_partition=3"), std::string::npos) << few->why_not[0];
}

// Images of a batch run one by one: the CPU splits the batch at the partition's inputs and joins it at its outputs.
TEST(DelegateClaims, ABatchIsDividedInItsPartition) {
  ir::Graph graph = two_convolutions();
  for (const ir::TensorId id : {0, 2, 3}) graph.tensor(id).shape.dims[0] = 3;
  runtime::SessionOptions session;
  session.partition = compile::PartitionBy::all;
  const auto claims = delegate_claims(runtime::open_target("sim:a311d").value(), graph, session);
  ASSERT_TRUE(claims.ok()) << claims.error().message;
  EXPECT_EQ(claims->why_not, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(claims->partitions, 1U);
}

// A mean over the batch needs all images.
TEST(DelegateClaims, PaddingAndMeansOfABatchAreDividedToo) {
  for (const auto& [axes, to, taken] : {std::tuple("1 2", "3x1x1x16", true), std::tuple("0 1", "1x1x16x16", false)}) {
    auto graph = ir::parse(fmt::format(R"(graph "padded"
tensor 0 "in" uint8 3x16x16x16 scale=0.05 zero=128
tensor 1 "margins" int32 4x2 const=[0 0 1 1 1 1 0 0]
tensor 2 "padded" uint8 3x18x18x16 scale=0.05 zero=128
tensor 3 "w" uint8 16x3x3x16 scale=0.02 zero=128 const=random:1
tensor 4 "between" uint8 3x16x16x16 scale=0.5 zero=120
tensor 5 "axes" int32 2 const=[{}]
tensor 6 "out" uint8 {} scale=0.5 zero=120
inputs 0
outputs 6
op 0 PAD in=[0 1] out=[2]
op 1 CONV_2D in=[2 3] out=[4] padding=valid
op 2 MEAN in=[4 5] out=[6] keep_dims=true
)",
                                       axes, to));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    runtime::SessionOptions session;
    session.partition = compile::PartitionBy::all;
    const auto claims = delegate_claims(runtime::open_target("sim:a311d").value(), *graph, session);
    ASSERT_TRUE(claims.ok()) << claims.error().message;
    EXPECT_EQ(claims->why_not[0] + claims->why_not[1], "");
    EXPECT_EQ(claims->why_not[2].empty(), taken) << claims->why_not[2];
    EXPECT_EQ(claims->partitions, 1U);
  }
}

// A reshape between operations of the host needs no job, so the NPU does not take it.
TEST(DelegateClaims, WhatNeedsNoJobStaysWithTheHost) {
  auto graph = ir::parse(R"(graph "flat"
tensor 0 "in" uint8 1x8x8x16 scale=0.05 zero=128
tensor 1 "flat" uint8 1x1024 scale=0.05 zero=128
tensor 2 "out" uint8 1x1024 scale=0.00390625 zero=0
inputs 0
outputs 2
op 0 RESHAPE in=[0] out=[1]
op 1 SOFTMAX in=[1] out=[2]
)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  runtime::SessionOptions session;
  session.partition = compile::PartitionBy::all;
  const auto claims = delegate_claims(runtime::open_target("sim:a311d").value(), *graph, session);
  ASSERT_TRUE(claims.ok()) << claims.error().message;
  EXPECT_EQ(claims->why_not[0], compile::kNoJob);
  EXPECT_FALSE(claims->why_not[1].empty());
  EXPECT_EQ(claims->partitions, 0U);
}

// A computed shape goes with its reader: if the host keeps the reader, it needs the shape.
TEST(DelegateClaims, AComputedShapeStaysWithItsReader) {
  auto graph = ir::parse(R"(graph "shape"
tensor 0 "in" uint8 1x8x8x16 scale=0.05 zero=128
tensor 1 "size" int32 4
tensor 2 "between" uint8 1x8x8x16 scale=0.05 zero=128
tensor 3 "w" uint8 16x3x3x16 scale=0.02 zero=128 const=random:1
tensor 4 "out" uint8 1x8x8x16 scale=0.5 zero=120
inputs 0
outputs 4
op 0 SHAPE in=[0] out=[1]
op 1 RESHAPE in=[0 1] out=[2]
op 2 CONV_2D in=[2 3] out=[4] padding=same
)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ASSERT_TRUE(ir::infer_shapes(*graph, ref::compute).ok());
  const auto target = runtime::open_target("sim:a311d");
  ASSERT_TRUE(target.ok()) << target.error().message;
  runtime::SessionOptions session;
  session.partition = compile::PartitionBy::all;
  for (const bool is_kept : {false, true}) {
    const auto claims = delegate_claims(*target, *graph, session, is_kept ? LeftToHost{{1, "kept"}} : LeftToHost());
    ASSERT_TRUE(claims.ok()) << claims.error().message;
    EXPECT_EQ(claims->why_not[0], is_kept ? "the host needs the shape it computes" : "");
    EXPECT_EQ(claims->is_folded, (std::vector<bool>{!is_kept, false, false}));
  }
}

// `check --delegate`, `fix` and `quantize` count by this.
TEST(DelegateClaims, WhatTheDelegatesOwnKernelsComputeIsNotOnTheNpu) {
  const DelegateClaims claims{.why_not = {"", "a reason", ""}, .on_cpu = {"", "", "no job"}};
  EXPECT_TRUE(claims.is_on_npu(0));
  EXPECT_FALSE(claims.is_on_npu(1));
  EXPECT_FALSE(claims.is_on_npu(2));
}

}  // namespace
}  // namespace skillet::tools
