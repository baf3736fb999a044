// Imports invalid files: no crash, and an error with the reason and the place. Best run with a sanitizer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/environment.h"
#include "base/testing/in_tree.h"
#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

// Graphs inside nodes, nested `depth` times.
std::string nested(int depth) {
  std::string attribute;
  for (int i = 0; i < depth; ++i) {
    const std::string inner = node("If", {"x"}, {"y"}, {attribute});
    attribute = message([&](pbf_writer& w) {
      w.add_string(1, "then_branch");
      w.add_message(6, message([&](pbf_writer& g) { g.add_message(1, inner); }));
    });
  }
  return attribute;
}

struct Row {
  const char* name;
  Parts parts;
  const char* sentence;  // empty: the file is read
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

const float kNan = std::numeric_limits<float>::quiet_NaN();
const std::string kOne = bytes_of<float>({1});

std::vector<Row> rows() {
  const auto with = [](const char* op, std::vector<std::string> inputs, std::vector<std::string> constants,
                       std::vector<std::string> attributes = {}) {
    return Parts{.nodes = {node(op, inputs, {"y"}, attributes)}, .constants = std::move(constants)};
  };
  const std::string image = value("x", {1, 2, 4, 4});
  const auto conv = [&](const Dims& weights, std::vector<std::string> attributes) {
    int64_t elems = 4;
    for (const int64_t dim : weights) elems *= dim;
    return Parts{.nodes = {node("Conv", {"x", "w"}, {"y"}, attributes)},
                 .constants = {tensor("w", kFloat, weights, std::string(static_cast<size_t>(elems), '\0'))},
                 .inputs = {image}};
  };
  return {
      {"right", with("Relu", {"x"}, {}), ""},
      {"right_conv", conv({3, 2, 3, 3}, {}), ""},
      {"too_few_bytes", with("Add", {"x", "c"}, {tensor("c", kFloat, {1}, "abc")}), "'c': it has 3 bytes, not 4"},
      {"huge", with("Add", {"x", "c"}, {tensor("c", kFloat, {1 << 20, 1 << 20}, "")}), "'c': its dimension"},
      {"negative", with("Add", {"x", "c"}, {tensor("c", kFloat, {-4}, "")}), "'c': its dimension -4 is not a size"},
      {"many_dims", with("Add", {"x", "c"}, {tensor("c", kFloat, Dims(17, 1), kOne)}), "'c': it has 17 dimensions"},
      {"odd_type", with("Add", {"x", "c"}, {tensor("c", 99, {1}, "a")}), "'c': its type 99 is not supported"},
      {"twice", with("Add", {"x", "c"}, {int64s("c", {1}), int64s("c", {1})}), "there are two constants 'c'"},
      {"cycle",
       {.nodes = {node("Add", {"x", "b"}, {"a"}), node("Add", {"x", "a"}, {"b"})}},
       "Add: it reads 'b', which"},
      {"itself", with("Add", {"x", "y"}, {}), "node 'n' Add: it reads 'y', which no earlier node computes"},
      {"made_twice",
       {.nodes = {node("Relu", {"x"}, {"y"}), node("Abs", {"x"}, {"y"})}},
       "it computes 'y', which exists"},
      {"overwrites", {.nodes = {node("Relu", {"x"}, {"x"})}}, "it computes 'x', which exists already"},
      {"no_output", {.nodes = {node("Relu", {"x"}, {"z"})}}, "no node computes its output 'y'"},
      {"no_rank",
       {.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {message([](pbf_writer& w) { w.add_string(1, "x"); })}},
       "input 'x' is not a tensor of known rank"},
      {"input_twice",
       {.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {value("x", {1}), value("x", {1})}},
       "there are two inputs 'x'"},
      {"large_input",
       {.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {value("x", {int64_t{1} << 40})}},
       "'x' has a dimension of 1099511627776"},
      {"reshape", with("Reshape", {"x", "s"}, {int64s("s", {4})}), "6 elements do not fit its shape [4]"},
      {"reshape_huge", with("Reshape", {"x", "s"}, {int64s("s", {INT64_MAX, INT64_MAX, 2})}), "elements do not fit"},
      {"concat_axis", with("Concat", {"x", "x"}, {}, {ints("axis", {9})}), "axis 9 is outside its 3 dimensions"},
      {"split", with("Split", {"x", "s"}, {int64s("s", {5})}, {ints("axis", {1})}), "its sizes do not add up"},
      {"slice_step", with("Slice", {"x", "a", "b", "a", "c"}, {int64s("a", {0}), int64s("b", {1}), int64s("c", {0})}),
       "its step is 0"},
      {"slice_min",
       with("Slice", {"x", "a", "b", "c", "d"},
            {int64s("a", {INT64_MAX}), int64s("b", {INT64_MIN}), int64s("c", {2}), int64s("d", {INT64_MIN})}),
       ""},
      {"gather", with("Gather", {"x", "i"}, {int64s("i", {7})}), ""},  // left, with a reason
      {"tile", with("Tile", {"x", "r"}, {int64s("r", {1 << 30, 1 << 30, 1})}), "has a dimension of"},
      {"tile_elems", with("Tile", {"x", "r"}, {int64s("r", {1 << 20, 1 << 20, 1})}), ""},  // left, too
      {"expand", with("Expand", {"x", "s"}, {int64s("s", {1, 2, 7})}), "its shape does not fit its input"},
      {"pads", conv({3, 2, 3, 3}, {ints("pads", {-1, 0, 0, 0})}), "a window, stride, dilation or pad is not a size"},
      {"strides", conv({3, 2, 3, 3}, {ints("strides", {0, 1})}), "a window, stride, dilation or pad is not a size"},
      {"window", conv({3, 2, 9, 9}, {}), "its windows are larger than its input"},
      {"rank", conv({3, 2, 3}, {}), "its windows do not fit its input"},
      {"squeeze", with("Squeeze", {"x", "a"}, {int64s("a", {1})}), "it drops a dimension that is not 1"},
      {"perm", with("Transpose", {"x"}, {}, {ints("perm", {0, 1, 5})}), "axis 5 is outside"},
      {"broadcast", with("Add", {"x", "c"}, {tensor("c", kFloat, {4}, std::string(16, '\0'))}), "incompatible sizes"},
      {"matmul", with("MatMul", {"x", "c"}, {tensor("c", kFloat, {4}, std::string(16, '\0'))}), "matrices do not fit"},
      {"nan_scale", with("QuantizeLinear", {"x", "s"}, {tensor("s", kFloat, {}, bytes_of<float>({kNan}))}), ""},
      {"odd_axis",
       with("DequantizeLinear", {"c", "s"},
            {tensor("c", kInt8, {2}, "ab"), tensor("s", kFloat, {2}, bytes_of<float>({1, 2}))}, {ints("axis", {-7})}),
       ""},
      {"domain", {.nodes = {node("Odd", {"x"}, {"y"}, {}, "org.example")}, .outputs = {value("y", {1, 2})}}, ""},
      {"no_shape",
       {.nodes = {node("Odd", {"x"}, {"y"})}, .outputs = {message([](pbf_writer& w) { w.add_string(1, "y"); })}},
       ""},
      {"old_axis",
       {.nodes = {node("Add", {"x", "c"}, {"y"}, {number("broadcast", 1), number("axis", 1)})},
        .constants = {tensor("c", kFloat, {2}, bytes_of<float>({1, 2}))},
        .opset = 6},
       "node 'n' Add: it broadcasts as in operator set 6: convert"},
      {"old_last_axis",
       {.nodes = {node("Add", {"x", "c"}, {"y"}, {number("broadcast", 1)})},
        .constants = {tensor("c", kFloat, {3}, bytes_of<float>({1, 2, 3}))},
        .opset = 6},
       ""},
      {"old_slope",
       {.nodes = {node("PRelu", {"x", "c"}, {"y"})},
        .constants = {tensor("c", kFloat, {2}, bytes_of<float>({1, 2}))},
        .opset = 6},
       "node 'n' PRelu: it broadcasts as in operator set 6: convert"},
      {"old_slope_of_all",
       {.nodes = {node("PRelu", {"x", "c"}, {"y"})}, .constants = {tensor("c", kFloat, {1}, kOne)}, .opset = 6},
       ""},
      {"nested", {.nodes = {node("If", {"x"}, {"y"}, {nested(2000)})}}, ""},
  };
}

class Forged : public testing::TestWithParam<Row> {};

TEST_P(Forged, IsReadOrRefusedWithASentence) {
  const auto graph = import(file(GetParam().parts), "m");
  if (*GetParam().sentence == '\0') {
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_TRUE(ir::parse(ir::print(*graph)).ok());
    return;
  }
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message.find(GetParam().sentence), std::string::npos) << graph.error().message;
}

INSTANTIATE_TEST_SUITE_P(Rows, Forged, testing::ValuesIn(rows()), [](const auto& row) { return row.param.name; });

// ---- numbers ---------------------------------------------------------------------------------------------------

// Axes other than the last one and the channels are moved to the end and back.
TEST(Softmax, IsAlongItsAxis) {
  const Dims dims = {2, 3, 4, 5};
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const std::string attribute = message([&](pbf_writer& w) {
      w.add_string(1, "axis");
      w.add_int64(3, static_cast<int64_t>(axis));
    });
    const auto graph = import(file({.nodes = {node("Softmax", {"x"}, {"y"}, {attribute})},
                                    .constants = {},
                                    .inputs = {value("x", dims)},
                                    .outputs = {value("y", dims)}}),
                              "m");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    auto made = ref::Interpreter::create(*graph);
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::vector<float> in(2 * 3 * 4 * 5), out(in.size());
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i % 29) / 8;
    std::memcpy(made->tensor(graph->inputs[0]).data(), in.data(), in.size() * sizeof(float));
    ASSERT_TRUE(made->run().ok());
    std::memcpy(out.data(), made->tensor(graph->outputs[0]).data(), out.size() * sizeof(float));
    size_t step = 1;
    for (size_t i = axis + 1; i < dims.size(); ++i) step *= static_cast<size_t>(dims[i]);
    const auto size = static_cast<size_t>(dims[axis]);
    for (size_t at = 0; at < in.size(); ++at) {
      float sum = 0;
      for (size_t i = 0; i < size; ++i) sum += std::exp(in[at - at / step % size * step + i * step] - in[at]);
      EXPECT_NEAR(out[at], 1 / sum, 1e-5) << axis << " " << at;
    }
  }
}

TEST(Clip, HasALowerAndAnUpperLimit) {
  const Parts parts{
      .nodes = {},
      .constants = {tensor("low", kFloat, {}, bytes_of({-1.0F})), tensor("high", kFloat, {}, bytes_of({2.0F}))}};
  EXPECT_EQ(run(in_halves("Clip", {1, 4}, {"low", "high"}, parts), std::vector<int8_t>{-100, -1, 3, 100}),
            (std::vector<int8_t>{-2, -1, 3, 4}));
  EXPECT_EQ(run(in_halves("Clip", {1, 4}, {"", "high"}, parts), std::vector<int8_t>{-100, -1, 3, 100}),
            (std::vector<int8_t>{-100, -1, 3, 4}));
}

// Constants with one number per channel or one per row.
TEST(Mul, ByNumbersOfEachChannelOrRow) {
  for (const Dims& numbers : {Dims{1, 2, 1, 1}, Dims{2, 1}}) {
    const Parts parts = in_halves("Mul", {1, 2, 2, 2}, {"numbers"},
                                  {.nodes = {node("DequantizeLinear", {"stored", "half", "zero"}, {"numbers"})},
                                   .constants = {tensor("stored", kInt8, numbers, bytes_of<int8_t>({2, 6}))}});
    const bool is_of_rows = numbers.size() == 2;
    EXPECT_EQ(run(parts, std::vector<int8_t>{1, 2, 3, 4, 5, 6, 7, 8}),
              is_of_rows ? (std::vector<int8_t>{1, 2, 9, 12, 5, 6, 21, 24})
                         : (std::vector<int8_t>{1, 2, 3, 4, 15, 18, 21, 24}));
  }
}

TEST(Celu, HasAnAlpha) {  // 2 (exp(x / 2) - 1) below 0
  EXPECT_EQ(run(in_halves("Celu", {1, 5}, {}, {}, {real("alpha", 2)}), std::vector<int8_t>{-8, -4, -2, 0, 4}),
            (std::vector<int8_t>{-3, -3, -2, 0, 4}));
}

TEST(Shrink, HasALimitAndABias) {
  EXPECT_EQ(run(in_halves("Shrink", {1, 5}, {}, {}, {real("lambd", 1), real("bias", 0.5F)}),
                std::vector<int8_t>{-8, -2, 2, 3, 8}),
            (std::vector<int8_t>{-7, 0, 0, 2, 7}));
}

TEST(LayerNormalization, IsOverAllDimensionsFromItsAxisOn) {
  const Parts parts{.nodes = {node("LayerNormalization", {"x", "scale"}, {"y"}, {number("axis", 1)})},
                    .constants = {tensor("scale", kFloat, {2, 3}, bytes_of<float>({1, 1, 1, 1, 1, 2}))}};
  const auto out = run(parts, std::vector<float>{0, 1, 2, 3, 4, 5});
  ASSERT_EQ(out.size(), 6U);
  for (size_t i = 0; i < 6; ++i) {
    const double normal = (static_cast<double>(i) - 2.5) / std::sqrt(35.0 / 12 + 1e-5);
    EXPECT_NEAR(out[i], normal * (i == 5 ? 2 : 1), 1e-5) << i;
  }
}

// Before version 13 it covers all dimensions from its axis on; the default axis is 1.
TEST(Softmax, OfOldVersionsIsOverAllThatIsBehindItsAxis) {
  const Dims dims = {2, 2, 2};
  const std::vector<int8_t> in = {0, 1, 2, 3, 0, 0, 0, 4};
  std::vector<float> reals;
  for (const int8_t one : in) reals.push_back(one);
  const auto in_float = run(Parts{.nodes = {node("Softmax", {"x"}, {"y"})},
                                  .constants = {},
                                  .inputs = {value("x", dims)},
                                  .outputs = {value("y", dims)},
                                  .opset = 11},
                            reals);
  const auto in_bytes = run(
      Parts{
          .nodes = {node("DequantizeLinear", {"x", "one", "zero"}, {"real"}), node("Softmax", {"real"}, {"share"}),
                    node("QuantizeLinear", {"share", "step", "least"}, {"y"})},
          .constants = {tensor("one", kFloat, {}, bytes_of({1.0F})), tensor("step", kFloat, {}, bytes_of({1.0F / 256})),
                        tensor("zero", kInt8, {}, std::string(1, '\0')),
                        tensor("least", kInt8, {}, std::string(1, '\x80'))},
          .inputs = {value("x", dims, kInt8)},
          .outputs = {value("y", dims, kInt8)},
          .opset = 11},
      in);
  ASSERT_TRUE(in_float.size() == in.size() && in_bytes.size() == in.size());
  for (size_t at = 0; at < in.size(); ++at) {
    double sum = 0;
    for (size_t i = at / 4 * 4; i < at / 4 * 4 + 4; ++i) sum += std::exp(in[i] - in[at]);
    EXPECT_NEAR(in_float[at], 1 / sum, 1e-5) << at;
    EXPECT_NEAR(in_bytes[at] + 128, 256 / sum, 1) << at;
  }
}

// Results of constants are constants: here the sizes for a Reshape.
TEST(Constants, AreComputed) {
  const Parts parts{
      .nodes = {node("Add", {"a", "b"}, {"sizes"}), node("Reshape", {"x", "sizes"}, {"z"}), node("Relu", {"z"}, {"y"})},
      .constants = {int64s("a", {1, 5}), int64s("b", {1, -2})},
      .inputs = {value("x", {1, 6})},
      .outputs = {value("y", {2, 3})}};
  EXPECT_EQ(run(parts, std::vector<float>{-1, 2, 3, -4, 5, 6}), (std::vector<float>{0, 2, 3, 0, 5, 6}));
}

// A few bytes of a file may describe any number of elements.
TEST(Constants, OfAnySizeAreComputedOrRefused) {
  const auto with = [](const Dims& filter, int64_t channels) {
    std::string sizes;
    for (const int64_t size : filter) sizes += bytes_of({size});
    return Parts{.nodes = {node("ConstantOfShape", {"sizes"}, {"w"}), node("Conv", {"x", "w"}, {"y"})},
                 .constants = {tensor("sizes", kInt64, {4}, sizes)},
                 .inputs = {value("x", {1, channels, 1, 1})},
                 .outputs = {value("y", {1, filter[0], 1, 1})}};
  };
  EXPECT_EQ(run(with({300, 300, 1, 1}, 300), std::vector<float>(300, 1)), std::vector<float>(300, 0));
  const auto large = import(file(with({20000, 20000, 1, 1}, 20000)), "m");
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().message.find("node 'n' ConstantOfShape: 'w' has more than 16777216 elements: write"),
            std::string::npos)
      << large.error().message;
  Parts many{.nodes = {}, .constants = {tensor("sizes", kInt64, {2}, bytes_of<int64_t>({1 << 12, 1 << 12}))}};
  for (int i = 0; i < 5; ++i) many.nodes.push_back(node("ConstantOfShape", {"sizes"}, {"c" + std::to_string(i)}));
  many.nodes.push_back(node("Relu", {"x"}, {"y"}));
  const auto all = import(file(many), "m");
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.error().message.find("'c4': too many elements are computed from constants"), std::string::npos);
}

TEST(Constants, OfARangeAreComputedOrRefused) {
  const auto with = [](int64_t end) {
    return Parts{.nodes = {node("Range", {"first", "end", "step"}, {"sizes"}), node("Reshape", {"x", "sizes"}, {"z"}),
                           node("Relu", {"z"}, {"y"})},
                 .constants = {tensor("first", kInt64, {}, bytes_of<int64_t>({2})),
                               tensor("end", kInt64, {}, bytes_of<int64_t>({end})),
                               tensor("step", kInt64, {}, bytes_of<int64_t>({1}))}};
  };
  EXPECT_EQ(run(with(4), std::vector<float>{-1, 2, 3, -4, 5, 6}), (std::vector<float>{0, 2, 3, 0, 5, 6}));
  const auto large = import(file(with((1 << 24) + 3)), "m");
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().message.find("node 'n' Range: 'sizes' has more than 16777216 elements: write"),
            std::string::npos)
      << large.error().message;
}

// ---- nodes without a matching operation ------------------------------------------------------------------------

std::vector<std::string> left_of(const Parts& parts, std::vector<std::string>& ops) {
  std::vector<std::string> left;
  ImportOptions options;
  options.left = &left;
  const auto graph = import(file(parts), "m", options);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  if (graph.ok()) {
    EXPECT_TRUE(ir::parse(ir::print(*graph)).ok());
    for (const ir::Op& op : graph->ops) ops.emplace_back(ir::op_name(op));
  }
  return left;
}

std::string unknown(const std::string& name) {
  return message([&](pbf_writer& w) { w.add_string(1, name); });
}

// The shape of their results is unknown: their readers are left too, and the rest is read.
TEST(Left, NodesAndTheirReadersWhereNoShapeIsKnown) {
  const Parts parts{
      .nodes = {node("Relu", {"x"}, {"a"}), node("If", {"a"}, {"b"}), node("Relu", {"b"}, {"c"}),
                node("Odd", {"c", "a"}, {"d"}, {}, "org.example"), node("Abs", {"a"}, {"e"}),
                node("DequantizeLinear", {"f", "half", "zero"}, {"g"}), node("Add", {"g", "e"}, {"h"})},
      .constants = {tensor("half", kFloat, {}, bytes_of({0.5F})), tensor("zero", kInt8, {}, std::string(1, '\0'))},
      .inputs = {value("x", {1, 2, 3})},
      .outputs = {unknown("d"), unknown("h"), unknown("b"), value("e", {1, 2, 3})}};
  Parts with_odd = parts;
  with_odd.nodes.insert(with_odd.nodes.begin() + 5, node("Odd", {"e"}, {"f"}, {}, "org.example"));
  std::vector<std::string> ops;
  EXPECT_EQ(left_of(with_odd, ops),
            (std::vector<std::string>{"node 'n' If: operation If is not supported",
                                      "node 'n' Relu: 'b' has a shape that is not known before the run",
                                      "node 'n' Odd: it is of the domain org.example",
                                      "node 'n' Odd: it is of the domain org.example",
                                      "node 'n' DequantizeLinear: 'f' has a shape that is not known before the run",
                                      "node 'n' Add: 'g' has a shape that is not known before the run"}));
  EXPECT_EQ(ops, (std::vector<std::string>{"RELU", "If", "Relu", "Odd", "ABS", "Odd", "DequantizeLinear", "Add"}));
}

// A node of another domain is not ONNX's operation of the same name.
TEST(Left, NodesOfOtherDomains) {
  std::vector<std::string> ops;
  const Parts parts{.nodes = {node("Relu", {"x"}, {"y"}, {}, "org.example")}, .outputs = {value("y", {1, 2, 3})}};
  EXPECT_EQ(left_of(parts, ops), (std::vector<std::string>{"node 'n' Relu: it is of the domain org.example"}));
  EXPECT_EQ(ops, (std::vector<std::string>{"Relu"}));
}

// These have no float form, so the error is about the quantized form.
TEST(Left, QLinearNodesForWhatTheyAre) {
  for (const auto& [scale, refusal] : {std::pair(0.0F, "its scale is 0"), {0.5F, "its channels are last"}}) {
    const Parts parts{
        .nodes = {node("QLinearGlobalAveragePool", {"x", "scale", "zero", "half", "zero"}, {"y"},
                       {number("channels_last", 1)}, "com.microsoft")},
        .constants = {tensor("scale", kFloat, {}, bytes_of({scale})), tensor("half", kFloat, {}, bytes_of({0.5F})),
                      tensor("zero", kInt8, {}, std::string(1, '\0'))},
        .inputs = {value("x", {1, 2, 2, 3}, kInt8)},
        .outputs = {value("y", {1, 1, 1, 3}, kInt8)}};
    std::vector<std::string> ops;
    EXPECT_EQ(left_of(parts, ops),
              (std::vector<std::string>{fmt::format("node 'n' QLinearGlobalAveragePool: {}", refusal)}));
  }
}

TEST(Left, AveragesOfWindowsThatAreTooLarge) {
  for (const int64_t pixels : {256, 257}) {
    const Parts parts{
        .nodes = {node("QLinearAveragePool", {"x", "scale", "zero", "half", "zero"}, {"y"},
                       {ints("kernel_shape", {1, pixels})}, "com.microsoft")},
        .constants = {tensor("scale", kFloat, {}, bytes_of({0.25F})), tensor("half", kFloat, {}, bytes_of({0.5F})),
                      tensor("zero", kInt8, {}, std::string(1, '\0'))},
        .inputs = {value("x", {1, 2, 1, pixels}, kInt8)},
        .outputs = {value("y", {1, 2, 1, 1}, kInt8)}};
    std::vector<std::string> ops;
    EXPECT_EQ(left_of(parts, ops).size(), pixels == 256 ? 0U : 1U) << pixels;
  }
}

// The result has other sizes than those in the node.
TEST(Left, AResizeThatKeepsItsAspect) {
  for (const bool is_declared : {false, true}) {
    const Parts parts{.nodes = {node("Resize", {"x", "", "", "sizes"}, {"y"},
                                     {word("mode", "linear"), word("keep_aspect_ratio_policy", "not_larger")})},
                      .constants = {int64s("sizes", {1, 1, 8, 6})},
                      .inputs = {value("x", {1, 1, 4, 4})},
                      .outputs = {is_declared ? value("y", {1, 1, 6, 6}) : unknown("y")}};
    std::vector<std::string> ops;
    EXPECT_EQ(left_of(parts, ops),
              (std::vector<std::string>{is_declared
                                            ? "node 'n' Resize: its keep_aspect_ratio_policy is not_larger, not stretch"
                                            : "node 'n' Resize: 'y' has a shape that is not known before the run"}));
  }
}

// A value that a graph inside a node reads is computed, and not merged: a following Relu is no part of its unit.
TEST(Left, NodesWithGraphsInside) {
  const auto branch = [](const std::string& graph) {
    return message([&](pbf_writer& w) {
      w.add_string(1, "then_branch");
      w.add_message(6, graph);
    });
  };
  const std::string inner =
      node("If", {"x"}, {"z"}, {branch(message([&](pbf_writer& g) { g.add_message(1, node("Abs", {"c"}, {"z"})); }))});
  for (const std::string& graph : {message([&](pbf_writer& g) { g.add_message(1, inner); }),
                                   message([&](pbf_writer& g) { g.add_message(12, unknown("c")); })}) {
    Parts parts{
        .nodes = {node("Abs", {"x"}, {"b"}), node("Identity", {"b"}, {"c"}), node("If", {"x"}, {"d"}, {branch(graph)})},
        .outputs = {unknown("d")}};
    const auto made = import(file(parts), "m");
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made->ops.size(), 2U);
    EXPECT_EQ(made->ops[1].inputs.back(), made->ops[0].outputs[0]);
  }
}

// Its outputs have 8 bits, with the quantization of their readers, which are not refused.
TEST(Left, NodesThatGiveQuantizedNumbersAlone) {
  for (const bool is_signed : {false, true}) {
    const int type = is_signed ? kInt8 : 2;
    const Parts parts{
        .nodes = {node("Odd", {"x"}, {"a"}, {}, "org.example"), node("DequantizeLinear", {"a", "half", "zero"}, {"b"}),
                  node("Relu", {"b"}, {"c"}), node("QuantizeLinear", {"c", "half", "zero"}, {"y"})},
        .constants = {tensor("half", kFloat, {}, bytes_of({0.5F})), tensor("zero", type, {}, std::string(1, '\7'))},
        .inputs = {value("x", {1, 2, 3}, type)},
        .outputs = {value("y", {1, 2, 3}, type), value("a", {1, 2, 3}, type)}};
    std::vector<std::string> ops;
    EXPECT_EQ(left_of(parts, ops), (std::vector<std::string>{"node 'n' Odd: it is of the domain org.example"}));
    EXPECT_EQ(std::ranges::count(ops, "Relu"), 1) << "a table";
  }
}

// ---- damaged files ---------------------------------------------------------------------------------------------

class Damaged : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto read = read_file(skillet::in_tree("tests/models/onnx/") + GetParam());
    ASSERT_TRUE(read.ok()) << read.error().message;
    file_ = *std::move(read);
    ASSERT_TRUE(import(file_, "m").ok());
  }

  static bool is_read(Bytes file) {
    const auto graph = import(std::move(file), "m");
    if (!graph.ok()) {
      EXPECT_GT(graph.error().message.size(), std::string_view("model 'm': ").size());
      return false;
    }
    EXPECT_TRUE(ir::verify(*graph).ok());
    return true;
  }

  Bytes file_;
};

int number_of(const char* variable, int otherwise) {
  const char* text = environment_variable(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST_P(Damaged, Prefixes) {
  for (size_t size = 0; size < file_.size(); size += file_.size() / 40 + 1)
    is_read(Bytes(file_.begin(), file_.begin() + static_cast<std::ptrdiff_t>(size)));
  EXPECT_FALSE(is_read(Bytes(file_.begin(), file_.begin() + std::ssize(file_) / 2)));
}

// SKILLET_TAMPER_BITS: number of tampered files, from seed SKILLET_TAMPER_FIRST on.
TEST_P(Damaged, Bytes) {
  const int first = number_of("SKILLET_TAMPER_FIRST", 1), count = number_of("SKILLET_TAMPER_BITS", 120);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    std::mt19937 random(static_cast<unsigned>(first + i));
    Bytes file = file_;
    for (int changes = 1 + i % 3; changes > 0; --changes) {
      const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<uint8_t>(random())};
      file[random() % file.size()] = extremes[random() % std::size(extremes)];
    }
    if (!is_read(std::move(file))) ++refused;
  }
  EXPECT_GT(refused, count / 50);
}

INSTANTIATE_TEST_SUITE_P(Files, Damaged, testing::Values("text_reader.onnx", "transformer.onnx", "lstm.onnx"),
                         [](const auto& file) {
                           return std::string(file.param).substr(0, std::string(file.param).find('.'));
                         });

}  // namespace
}  // namespace skillet::onnx
