#include "graph/ir/settle.h"

#include <gtest/gtest.h>

namespace skillet::ir {
namespace {

// As TFLite's kernels treat them: refused, ignored, or used.
TEST(Settle, ZeroPointsOfInt8Filters) {
  constexpr std::string_view kOne = " scale=0.1 zero=7 const=zeros";
  constexpr std::string_view kEach = " scale=[0.1 0.2 0.3] zero=[7 7 0] axis=0 const=zeros";
  constexpr std::string_view kDepths = " scale=[0.1 0.2 0.3] zero=[7 7 0] axis=3 const=zeros";
  enum class Reads : uint8_t { refused, ignored, meant };
  struct Row {
    std::string_view input, filter, quant, op;
    Reads reads;
  };
  const Row rows[] = {
      {"int8 1x4x4x3", "int8 3x1x1x3", kOne, "CONV_2D in=[0 1]", Reads::refused},
      {"int8 1x4x4x3", "int8 3x1x1x3", kEach, "CONV_2D in=[0 1]", Reads::refused},
      {"uint8 1x4x4x3", "uint8 3x1x1x3", kOne, "CONV_2D in=[0 1]", Reads::meant},
      {"int8 1x4x4x3", "int8 1x3x3x3", kOne, "DEPTHWISE_CONV_2D in=[0 1]", Reads::ignored},
      {"int8 1x4x4x3", "int8 1x3x3x3", kDepths, "DEPTHWISE_CONV_2D in=[0 1]", Reads::ignored},
      {"uint8 1x4x4x3", "uint8 1x3x3x3", kOne, "DEPTHWISE_CONV_2D in=[0 1]", Reads::meant},
      {"int8 1x4x4x3", "int8 3x1x1x3", kOne, "TRANSPOSE_CONV in=[2 1 0]", Reads::ignored},
      {"int8 1x4x4x3", "int8 3x1x1x3", kEach, "TRANSPOSE_CONV in=[2 1 0]", Reads::ignored},
      {"uint8 1x4x4x3", "uint8 3x1x1x3", kOne, "TRANSPOSE_CONV in=[2 1 0]", Reads::meant},
      {"int8 4x3", "int8 3x3", kOne, "FULLY_CONNECTED in=[0 1]", Reads::meant},
      {"int8 4x3", "int8 3x3", kEach, "FULLY_CONNECTED in=[0 1]", Reads::ignored},
      {"uint8 4x3", "uint8 3x3", kOne, "FULLY_CONNECTED in=[0 1]", Reads::meant},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} {}{}", row.op, row.filter, row.quant));
    const std::string type(row.input.substr(0, row.input.find(' ')));
    auto graph = parse(fmt::format(
        "tensor 0 \"in\" {} scale=1 zero=0\ntensor 1 \"w\" {}{}\ntensor 2 \"size\" int32 4 const=[1 4 4 3]\n"
        "tensor 3 \"out\" {} 7 scale=1 zero=0\ninputs 0\noutputs 3\nop 0 {} out=[3]\n",
        row.input, row.filter, row.quant, type, row.op));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const std::vector<int32_t> before = graph->tensors[1].quant.zero_points;
    ASSERT_TRUE(infer_shapes(*graph).ok());
    const auto done = settle_filter(*graph, 0);
    ASSERT_EQ(done.ok(), row.reads != Reads::refused) << (done.ok() ? "" : done.error().message);
    if (!done.ok()) {
      EXPECT_NE(done.error().message.find("filter tensor 1 'w'"), std::string::npos) << done.error().message;
      continue;
    }
    const Tensor& filter = graph->tensor(graph->ops[0].inputs[1]);
    const std::vector<int32_t> zeros(before.size());
    EXPECT_EQ(filter.quant.zero_points, row.reads == Reads::ignored ? zeros : before);
    EXPECT_EQ(filter.quant.scales, graph->tensors[1].quant.scales);
    EXPECT_EQ(graph->tensors[1].quant.zero_points, before) << "others may read it";
    const auto verified = verify(*graph);
    EXPECT_TRUE(verified.ok()) << verified.error().message;
  }
}

}  // namespace
}  // namespace skillet::ir
