// What is computed when a file is read, and nodes that are left for ONNX Runtime.
#include <gtest/gtest.h>

#include "base/log.h"
#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

// Sizes of a Reshape to rows of two, as nodes compute them of constants.
TEST(Constants, AreComputedAsOnnxSays) {
  struct Row {
    const char* op;
    std::vector<std::string> constants;  // its inputs a, b and so on
    int64_t to = 0;                      // type of a Cast before them
  };
  const auto wide = [](const char* name, std::initializer_list<int64_t> values) { return int64s(name, values); };
  const auto real_pair = [](float first, float second) { return floats("a", {2}, {first, second}); };
  const Row all[] = {
      {"Sub", {wide("a", {4, 3}), wide("b", {1})}},
      {"Mul", {wide("a", {1, 2}), wide("b", {3, 1})}},
      {"Div", {wide("a", {7, 5}), wide("b", {2})}},
      {"Min", {wide("a", {3, 5}), wide("b", {4, 2})}},
      {"Max", {wide("a", {3, 1}), wide("b", {2, 2})}},
      {"Slice", {wide("a", {9, 3, 9, 2}), wide("b", {1}), wide("c", {4}), wide("d", {0}), wide("e", {2})}},
      {"Slice", {wide("a", {9, 3, 2}), wide("b", {-2}), wide("c", {INT64_MAX})}},
      {"Slice", {wide("a", {2, 3}), wide("b", {-1}), wide("c", {INT64_MIN}), wide("d", {0}), wide("e", {-1})}},
      {"Slice", {wide("a", {2, 9, 3}), wide("b", {9}), wide("c", {-9}), wide("d", {-1}), wide("e", {-2})}},
      {"Neg", {wide("a", {-3, -2})}},
      {"Where", {tensor("a", kBool, {2}, bytes_of<int8_t>({1, 0})), wide("b", {3, 9}), wide("c", {9, 2})}},
      {"Floor", {real_pair(3.75F, 2.5F)}, kInt64},
      {"Ceil", {real_pair(2.25F, 1.5F)}, kInt64},
      {"Sqrt", {real_pair(9, 4)}, kInt64},
      {"Round", {real_pair(2.75F, 2.5F)}, kInt64},
  };
  const std::vector<float> in = {1, 2, 3, 4, 5, 6};
  for (const Row& row : all) {
    std::vector<std::string> inputs;
    for (size_t i = 0; i < row.constants.size(); ++i) inputs.push_back(std::string(1, static_cast<char>('a' + i)));
    Parts parts{.nodes = {node(row.op, inputs, {"made"})}, .constants = row.constants, .inputs = {value("x", {6})}};
    if (row.to != 0) parts.nodes.push_back(node("Cast", {"made"}, {"sizes"}, {number("to", row.to)}));
    parts.nodes.push_back(node("Reshape", {"x", row.to == 0 ? "made" : "sizes"}, {"y"}));
    const auto graph = import(file(parts), "m");
    ASSERT_TRUE(graph.ok()) << row.op << ": " << graph.error().message;
    EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (ir::Shape{3, 2})) << row.op;
    EXPECT_EQ(run(parts, in), in) << row.op;
  }
}

// How many elements there are is not known: that is no reason to say that there are too many.
TEST(Left, AFillOfUnknownSizeIsNotTooLarge) {
  std::vector<std::string> left;
  ImportOptions options;
  options.left = &left;
  const auto graph = import(
      file({.nodes = {node("Odd", {"x"}, {"s"}), node("ConstantOfShape", {"s"}, {"c"}), node("Relu", {"x"}, {"y"})},
            .outputs = {value("y", {}), value("c", {-1, 2})}}),
      "m", options);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(left.size(), 2u) << fmt::format("{}", fmt::join(left, "\n"));
}

// What nobody here computes has a size nevertheless.
TEST(Left, TopKHasAsManyAsItPicks) {
  const auto with = [](int64_t k) {
    return Parts{.nodes = {node("TopK", {"x", "k"}, {"v", "i"}), node("Relu", {"v"}, {"y"})},
                 .constants = {int64s("k", {k})}};
  };
  const auto graph = import(file(with(2)), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (ir::Shape{1, 2, 2}));
  const auto refused = import(file(with(4)), "m");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("it picks more elements than exist"), std::string::npos)
      << refused.error().message;
}

// As PyTorch writes an expansion whose sizes are -1 where they stay: known, so that no node is left.
TEST(Constants, OfAnExpansionAreChosenByAComparison) {
  const Parts parts{
      .nodes = {node("ConstantOfShape", {"rank"}, {"ones"}, {tensor_attribute(int64s("", {1}))}),
                node("Mul", {"ones", "minus"}, {"stays"}), node("Equal", {"wanted", "stays"}, {"is"}),
                node("Where", {"is", "ones", "wanted"}, {"sizes"}), node("Expand", {"x", "sizes"}, {"y"})},
      .constants = {int64s("rank", {3}), int64s("minus", {-1}), int64s("wanted", {2, -1, -1})}};
  const auto graph = import(file(parts), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (ir::Shape{2, 2, 3}));
  EXPECT_EQ(run(parts, std::vector<float>{1, 2, 3, 4, 5, 6}), (std::vector<float>{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

// Comparisons of constants, as numbers that are added.
TEST(Constants, AreCompared) {
  const std::pair<const char*, std::vector<float>> all[] = {
      {"Equal", {0, 1, 0}}, {"Greater", {0, 0, 1}}, {"Less", {1, 0, 0}}};
  for (const auto& [op, want] : all) {
    const Parts parts{.nodes = {node(op, {"a", "b"}, {"is"}), node("Cast", {"is"}, {"n"}, {number("to", kFloat)}),
                                node("Add", {"x", "n"}, {"y"})},
                      .constants = {int64s("a", {1, 2, 3}), int64s("b", {2, 2, 2})},
                      .inputs = {value("x", {3})}};
    EXPECT_EQ(run(parts, std::vector<float>{0, 0, 0}), want) << op;
  }
}

// A column and a row that are added are no list of one number each; the sum with x is what ONNX says nevertheless.
TEST(Constants, OfAColumnAndARowAreATable) {
  for (const auto& [column, row] : {std::pair(Dims{2, 1}, Dims{1, 3}), std::pair(Dims{2, 1}, Dims{3})}) {
    const Parts parts{.nodes = {node("Add", {"a", "b"}, {"c"}), node("Add", {"x", "c"}, {"y"})},
                      .constants = {floats("a", column, {10, 20}), floats("b", row, {1, 2, 3})}};
    EXPECT_EQ(run(parts, std::vector<float>(6, 0)), (std::vector<float>{11, 12, 13, 21, 22, 23}));
  }
}

// Tables are not joined when a file is read; axes that are computed say no size. The reader does not end for either.
TEST(Constants, AreLeftWhereTheirFormIsNotKnown) {
  const Parts joined{.nodes = {node("Concat", {"a", "b"}, {"c"}, {number("axis", 0)}), node("Add", {"x", "c"}, {"y"})},
                     .constants = {floats("a", {1, 3}, {1, 2, 3}), floats("b", {1, 3}, {4, 5, 6})}};
  EXPECT_EQ(run(joined, std::vector<float>(6, 0)), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  for (const char* op : {"Unsqueeze", "Squeeze", "ReduceMean", "Reshape", "Expand", "Tile", "Slice", "Pad"}) {
    Parts parts = one(op, {"axes"}, {}, {}, 18);
    parts.inputs = {value("x", {1, 2, 3}), value("axes", {2}, kInt64)};
    std::vector<std::string> left;
    ImportOptions options;
    options.left = &left;
    const auto graph = import(file(parts), "m", options);
    EXPECT_TRUE(!graph.ok() || !left.empty()) << op;
  }
}

// A filter that is turned, and one that is quantized and dequantized, per column.
TEST(Constants, AreTurnedAndQuantized) {
  const Parts turned{.nodes = {node("Transpose", {"w"}, {"t"}), node("MatMul", {"x", "t"}, {"y"})},
                     .constants = {floats("w", {2, 3}, {1, 2, 3, 0, 1, 0})}};
  EXPECT_EQ(run(turned, std::vector<float>{1, 1, 1, 0, 2, 1}), (std::vector<float>{6, 1, 7, 2}));
  const Parts quantized{
      .nodes = {node("QuantizeLinear", {"w", "s", "z"}, {"q"}, {number("axis", 1)}),
                node("DequantizeLinear", {"q", "s", "z"}, {"d"}, {number("axis", 1)}), node("Add", {"x", "d"}, {"y"})},
      .constants = {floats("w", {1, 3}, {0.74F, 300, -5}), floats("s", {3}, {0.5F, 2, 4}),
                    tensor("z", kInt8, {3}, bytes_of<int8_t>({0, 0, 1}))}};
  EXPECT_EQ(run(quantized, std::vector<float>(6, 0)), (std::vector<float>{0.5F, 254, -4, 0.5F, 254, -4}));
}

}  // namespace
}  // namespace skillet::onnx
