// Tests the limit of `skillet check --require`: all operations that the CPU runs must count, of any kind.
#include "tools/time/npu_share.h"

#include <gtest/gtest.h>

#include "graph/ir/graph.h"

namespace skillet::tools {
namespace {

constexpr std::string_view kChip = "a311d";

// A small convolution, then an operation whose operands have these shapes.
ir::Graph conv_then(std::string_view op, const std::vector<std::string_view>& operands, std::string_view out) {
  std::string tensors = "tensor 0 \"x\" int8 1x8x8x4\ntensor 1 \"w\" int8 4x1x1x4\ntensor 2 \"c\" int8 1x8x8x4\n",
              inputs;
  size_t next = 3;
  for (const std::string_view shape : operands) {
    inputs += fmt::format(" {}", next);
    tensors += fmt::format("tensor {} \"t\" int8 {}\n", next++, shape);
  }
  auto graph = ir::parse(
      fmt::format("graph \"g\"\n{}tensor {} \"y\" int8 {}\ninputs 0\noutputs {}\nop 0 CONV_2D in=[0 1 -] out=[2]\n"
                  "op 1 {} in=[{}] out=[{}]\n",
                  tensors, next, out, next, op, inputs.substr(1), next));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? std::move(graph).value() : ir::Graph();
}

struct Case {
  std::string_view op;
  std::vector<std::string_view> operands;
  std::string_view out;
};

TEST(NpuShare, CountsWhatIsLeftToTheCpu) {
  const std::vector<std::string_view> gates = {"1x64",  "64x64", "64x64", "64x64", "64x64", "64x64", "64x64",
                                               "64x64", "64x64", "64",    "64",    "64",    "64",    "64",
                                               "64",    "64",    "64x64", "64",    "1x64",  "1x64"};
  std::vector<std::string_view> sequence = gates;
  sequence[0] = "1x20x64";
  const Case cases[] = {
      {"CONV_2D", {"1x32x32x16", "32x3x3x16"}, "1x32x32x32"},
      {"DEPTHWISE_CONV_2D", {"1x32x32x64", "1x3x3x64"}, "1x32x32x64"},
      {"TRANSPOSE_CONV", {"4", "32x3x3x16", "1x32x32x16"}, "1x64x64x32"},
      {"FULLY_CONNECTED", {"4x8x256", "256x256"}, "4x8x256"},
      {"BATCH_MATMUL", {"4x64x64", "4x64x64"}, "4x64x64"},
      {"LSTM", gates, "1x64"},
      {"UNIDIRECTIONAL_SEQUENCE_LSTM", sequence, "1x20x64"},
      {"\"SVDF\"", {"1x64", "256x64", "256x10"}, "1x64"},
      {"\"RNN\"", {"1x64", "256x64", "256x256", "256"}, "1x256"},
      {"\"CONV_3D\"", {"1x8x8x8x4", "3x3x3x4x8"}, "1x8x8x8x8"},
      // No multiply-accumulates, or an unknown number.
      {"SOFTMAX", {"1x64x64x32"}, "1x64x64x32"},
      {"RESIZE_BILINEAR", {"1x8x8x4", "2"}, "1x64x64x4"},
      {"\"WHILE\"", {"1x64x64x32"}, "1x64x64x32"},
      {"\"MyOperation\"", {"1x64x64x32"}, "1x64x64x32"},
  };
  for (const Case& one : cases) {
    const ModelWork work = work_of(conv_then(one.op, one.operands, one.out), kChip);
    EXPECT_FALSE(npu_share(work, {true, false}).reaches(90))
        << one.op << ": " << npu_share(work, {true, false}).print();
    if (work.macs[1] > 0) {
      EXPECT_TRUE(npu_share(work, {false, true}).reaches(50)) << one.op;
    }
    EXPECT_EQ(work.macs[1] > 0, &one < &cases[10]) << one.op;
    EXPECT_TRUE(npu_share(work, {true, true}).reaches(100)) << one.op;
    EXPECT_FALSE(npu_share(work, {false, false}).reaches(1)) << one.op;
  }
}

TEST(NpuShare, WithoutTimesCountsOperations) {
  const ModelWork work = work_of(conv_then("ADD", {"1x8", "1x8"}, "1x8"), "");
  EXPECT_EQ(npu_share(work, {true, false}).print(), "100.0 % of the MACs");
  EXPECT_EQ(npu_share({.macs = {0, 0, 0}, .cpu_ps = {}}, {true, false, true}).print(), "66.6 % of the operations");
}

// 99.96 % of the multiply-accumulates must not be printed as 100 %; a time may be rounded.
TEST(NpuShare, IsNotRoundedToAll) {
  const NpuShare share = npu_share({.macs = {9996, 4}, .cpu_ps = {9996, 4}}, {true, false});
  EXPECT_EQ(share.print(), "99.9 % of the MACs, 100.0 % of the CPU's time");
  EXPECT_FALSE(share.reaches(100));
  EXPECT_TRUE(share.reaches(99.96));
  EXPECT_TRUE(npu_share({.macs = {0, 0}, .cpu_ps = {9996, 4}}, {true, false}).reaches(100));
  EXPECT_FALSE(npu_share({.macs = {0, 0}, .cpu_ps = {9994, 6}}, {true, false}).reaches(100));
}

TEST(NpuShare, TheLeastOfWhatIsKnownIsTheShare) {
  using Work = std::vector<uint64_t>;
  EXPECT_EQ(npu_share({.macs = Work{3, 1}, .cpu_ps = Work{1, 1}}, {true, false}).percent(), 50);
  EXPECT_EQ(npu_share({.macs = Work{0, 0}, .cpu_ps = Work{0, 5}}, {true, false}).percent(), 0);
  EXPECT_EQ(npu_share({.macs = Work{0, 4}, .cpu_ps = {}}, {true, false}).percent(), 0);
  EXPECT_EQ(npu_share({.macs = Work{0, 0}, .cpu_ps = {}}, {true, false}).percent(), 50);
}

}  // namespace
}  // namespace skillet::tools
