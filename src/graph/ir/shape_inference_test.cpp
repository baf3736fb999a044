#include <gtest/gtest.h>

#include "graph/ir/graph.h"

namespace skillet::ir {
namespace {

// One op on tensor 0; `operands` are further tensor lines (numbered from 1), `op` is the op with its attributes.
struct Case {
  std::string_view input;             // type and shape of tensor 0
  std::vector<std::string> operands;  // type, shape, fields
  std::string op;                     // name, inputs, attributes
  std::vector<std::string> expected;  // shapes of the outputs, or one error text
};

Result<Graph> build(const Case& c, size_t outputs) {
  std::string text = fmt::format("tensor 0 \"in\" {}\n", c.input);
  size_t next = 1;
  for (const std::string& operand : c.operands) text += fmt::format("tensor {} \"\" {}\n", next++, operand);
  std::string out;
  for (size_t i = 0; i < outputs; ++i) {
    text += fmt::format("tensor {} \"out\" {}\n", next, c.input.find("int8") == 0 ? "int8 7 scale=1" : "float32 7");
    out += fmt::format("{} ", next++);
  }
  return parse(text + fmt::format("inputs 0\nop 0 {} out=[{}]\n", c.op, out));
}

void check(const Case& c) {
  SCOPED_TRACE(c.op);
  auto graph = build(c, c.expected.size());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto result = infer_shapes(*graph);
  if (!result.ok()) {
    EXPECT_NE(result.error().message.find(c.expected[0]), std::string::npos) << result.error().message;
    return;
  }
  for (size_t i = 0; i < c.expected.size(); ++i) {
    EXPECT_EQ(graph->tensor(graph->ops[0].outputs[i]).shape.to_string(), c.expected[i]);
  }
  EXPECT_TRUE(verify(*graph).ok()) << verify(*graph).error().message;
}

std::string ints(std::string_view shape, std::string_view values) {
  return fmt::format("int32 {} const=[{}]", shape, values);
}

TEST(ShapeInference, Windows) {
  const std::string_view image = "float32 1x9x8x4";
  const auto conv = [](std::string attrs) { return "CONV_2D in=[0 1] " + attrs; };
  for (const Case& c : std::initializer_list<Case>{
           {image, {"float32 6x3x3x4 const=zeros"}, conv(""), {"1x9x8x6"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("stride_h=2 stride_w=3"), {"1x5x3x6"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("padding=valid stride_h=2"), {"1x4x6x6"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("padding=valid dilation_h=4 dilation_w=3"), {"1x1x2x6"}},
           {image,
            {"float32 6x3x3x4 const=zeros"},
            conv("padding=valid dilation_h=5"),
            {"dimension 1 comes out as -1"}},
           {image, {"float32 6x3x3x2 const=zeros"}, conv(""), {"1x9x8x6"}},
           {image, {"float32 5x3x3x2 const=zeros"}, conv(""), {"does not fit 4 input channels"}},
           {image, {"float32 1x3x3x8 const=zeros"}, "DEPTHWISE_CONV_2D in=[0 1]", {"1x9x8x8"}},
           {image, {"float32 1x3x3x6 const=zeros"}, "DEPTHWISE_CONV_2D in=[0 1]", {"does not fit"}},
           {image, {"float32 2x3x3x4 const=zeros"}, "DEPTHWISE_CONV_2D in=[0 1]", {"does not fit"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("rows=[1 0]"), {"1x8x8x6"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("rows=[-3 0] stride_h=2"), {"1x2x8x6"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("rows=[2 2]"), {"1x11x8x6"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("rows=[3 0]"), {"windows without a row"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("rows=[0 3]"), {"windows without a row"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("rows=[-9 0]"), {"dimension 1 comes out as -2"}},
           {image, {"float32 6x3x3x4 const=zeros"}, conv("rows=[0 -40000]"), {"outside -32768..32768"}},
           {image, {}, "MAX_POOL_2D in=[0] rows=[0 -1] filter_h=2 stride_h=2", {"1x4x8x4"}},
           {image,
            {"float32 3x2x2x4 const=zeros", ints("4", "1 9 8 3")},
            "TRANSPOSE_CONV in=[2 1 0] rows=[0 0]",
            {"its own padding of rows"}},
           {image, {}, "MAX_POOL_2D in=[0] padding=valid filter_h=9 filter_w=2 stride_w=2", {"1x1x4x4"}},
           {image, {}, "AVERAGE_POOL_2D in=[0] filter_h=0", {"filter 0x1 is outside"}},
           {image,
            {"float32 3x2x2x4 const=zeros", ints("4", "1 18 16 3")},
            "TRANSPOSE_CONV in=[2 1 0] stride_h=2 stride_w=2",
            {"1x18x16x3"}},
           {image, {"float32 3x2x2x4 const=zeros", ints("4", "1 18 16 4")}, "TRANSPOSE_CONV in=[2 1 0]", {"not agree"}},
           {"float32 2x3x4", {"float32 5x4 const=zeros"}, "FULLY_CONNECTED in=[0 1]", {"6x5"}},
           {"float32 2x3x4", {"float32 5x4 const=zeros"}, "FULLY_CONNECTED in=[0 1] keep_num_dims=true", {"2x3x5"}},
           {"float32 2x3x4", {"float32 5x8 const=zeros"}, "FULLY_CONNECTED in=[0 1] keep_num_dims=true", {"rows of 8"}},
       }) {
    check(c);
  }
}

TEST(ShapeInference, DepthMultiplierComesFromTheChannels) {
  auto graph = build({"float32 1x4x4x2", {"float32 1x3x3x6 const=zeros"}, "DEPTHWISE_CONV_2D in=[0 1]", {}}, 1);
  ASSERT_TRUE(graph.ok() && infer_shapes(*graph).ok());
  EXPECT_EQ(graph->ops[0].as<ConvAttrs>().depth_multiplier, 3);
}

TEST(ShapeInference, Elementwise) {
  for (const Case& c : std::initializer_list<Case>{
           {"float32 2x1x3", {"float32 5x1 const=zeros"}, "ADD in=[0 1]", {"2x5x3"}},
           {"float32 2x1x3", {"float32 scalar const=zeros"}, "MUL in=[0 1]", {"2x1x3"}},
           {"float32 2x1x3", {"float32 2 const=zeros"}, "SUB in=[0 1]", {"shapes 2x1x3 and 2 do not broadcast"}},
           {"float32 2x1x3", {"int8 1 const=zeros"}, "DIV in=[0 1]", {"its type differs"}},
           {"float32 2x1x3", {}, "RELU6 in=[0]", {"2x1x3"}},
           {"float32 2x4x3", {"float32 1x3 const=zeros"}, "PRELU in=[0 1]", {"2x4x3"}},
           {"float32 2x1x3", {"float32 4x3 const=zeros"}, "PRELU in=[0 1]", {"alpha 4x3 does not broadcast"}},
           {"float32 2x3", {}, "SOFTMAX in=[0]", {"2x3"}},
           {"float32 scalar", {}, "SOFTMAX in=[0]", {"scalar"}},
           {"float32 2x3x4x5", {ints("2", "1 -2")}, "MEAN in=[0 1]", {"2x5"}},
           {"float32 2x3x4x5", {ints("2", "1 -2")}, "SUM in=[0 1] keep_dims=true", {"2x1x1x5"}},
           {"float32 2x3", {ints("scalar", "2")}, "MEAN in=[0 1]", {"axis 2 is outside the 2 dimensions"}},
           {"float32 1x3x4x5", {ints("2", "6 9")}, "RESIZE_BILINEAR in=[0 1]", {"1x6x9x5"}},
           {"float32 1x3x4x5", {ints("2", "6 0")}, "RESIZE_BILINEAR in=[0 1]", {"1x6x0x5"}},
           {"float32 1x3x4x5", {ints("1", "6")}, "RESIZE_NEAREST_NEIGHBOR in=[0 1]", {"1 elements, not 2"}},
           {"float32 2x3", {ints("1", "1")}, "ARG_MAX in=[0 1]", {"must be int32 or int64"}},
           {"float32 0x3", {}, "RELU in=[0]", {"0x3"}},
           {"float32 0x3", {"int32 1 const=[0]"}, "GATHER in=[0 1]", {"has no elements, but its results have"}},
           {"float32 0x3", {ints("1", "0")}, "MEAN in=[0 1]", {"3"}},
       }) {
    check(c);
  }
}

TEST(ShapeInference, Layout) {
  for (const Case& c : std::initializer_list<Case>{
           {"float32 2x3", {"float32 2x5"}, "CONCATENATION in=[0 1] axis=-1", {"tensor 1"}},  // never produced
           {"float32 2x3", {"float32 2x5 const=zeros"}, "CONCATENATION in=[0 1 0] axis=-1", {"2x11"}},
           {"float32 2x3", {"float32 3x3 const=zeros"}, "CONCATENATION in=[0 1] axis=1", {"does not fit the first"}},
           {"float32 2x3", {}, "CONCATENATION in=[0] axis=2", {"axis 2 is outside"}},
           {"float32 2x6", {ints("scalar", "1")}, "SPLIT in=[1 0] count=3", {"2x2", "2x2", "2x2"}},
           {"float32 2x6", {ints("scalar", "1")}, "SPLIT in=[1 0] count=4", {"split into 4", "", "", ""}},
           {"float32 2x6", {ints("scalar", "1")}, "SPLIT in=[1 0] count=2", {"1 outputs, but the attributes have 2"}},
           {"float32 2x6", {ints("2", "-1 2"), ints("1", "1")}, "SPLIT_V in=[0 1 2]", {"2x4", "2x2"}},
           {"float32 2x6", {ints("2", "3 2"), ints("1", "1")}, "SPLIT_V in=[0 1 2]", {"add up to 5", ""}},
           {"float32 2x6", {ints("2", "6 -1"), ints("1", "1")}, "SPLIT_V in=[0 1 2]", {"2x6", "2x0"}},
           {"float32 2x6", {ints("2", "7 -1"), ints("1", "1")}, "SPLIT_V in=[0 1 2]", {"outside 0..6", ""}},
           {"float32 2x6", {ints("2", "-1 -1"), ints("1", "1")}, "SPLIT_V in=[0 1 2]", {"more than one", ""}},
           {"float32 2x3", {}, "PACK in=[0 0] axis=-1 count=2", {"2x3x2"}},
           {"float32 2x3", {}, "UNPACK in=[0] axis=0 count=2", {"3", "3"}},
           {"float32 2x3", {}, "UNPACK in=[0] axis=1 count=2", {"the dimension is 3", ""}},
           {"float32 2x3", {ints("2x2", "1 2 0 4")}, "PAD in=[0 1]", {"5x7"}},
           {"float32 2x3", {ints("2x2", "1 -2 0 4")}, "PAD in=[0 1]", {"2 rows of 2 values from 0"}},
           {"float32 2x6", {ints("3", "-1 2 3")}, "RESHAPE in=[0 1]", {"2x2x3"}},
           {"float32 2x6", {ints("2", "-1 5")}, "RESHAPE in=[0 1]", {"do not fit the new shape 0x5"}},
           {"float32 2x6", {ints("2", "3 5")}, "RESHAPE in=[0 1]", {"12 values do not fit the new shape 3x5"}},
           {"float32 2x6", {}, "RESHAPE in=[0] shape=[4 3]", {"4x3"}},
           {"float32 1", {}, "RESHAPE in=[0] shape=[0]", {"scalar"}},
           {"float32 7", {}, "RESHAPE in=[0]", {"7"}},
           {"float32 1x2x1", {}, "SQUEEZE in=[0]", {"2"}},
           {"float32 1x2x1", {}, "SQUEEZE in=[0] axes=[-1]", {"1x2"}},
           {"float32 1x2x1", {}, "SQUEEZE in=[0] axes=[1]", {"dimension 1 is 2, not 1"}},
           {"float32 2x3", {ints("scalar", "-1")}, "EXPAND_DIMS in=[0 1]", {"2x3x1"}},
           {"float32 2x3x4", {ints("3", "2 0 1")}, "TRANSPOSE in=[0 1]", {"4x2x3"}},
           {"float32 2x3x4", {ints("3", "2 0 2")}, "TRANSPOSE in=[0 1]", {"axis 2 is listed twice"}},
           {"float32 2x3x4", {ints("2", "2 0")}, "TRANSPOSE in=[0 1]", {"lists 2 of 3 axes"}},
           {"float32 5x6", {ints("2", "1 2"), ints("2", "-1 3")}, "SLICE in=[0 1 2]", {"4x3"}},
           {"float32 5x6", {ints("2", "1 4"), ints("2", "-1 3")}, "SLICE in=[0 1 2]", {"begin 4 size 3 is outside"}},
           {"float32 1x4x6x2", {}, "SPACE_TO_DEPTH in=[0] block_size=2", {"1x2x3x8"}},
           {"float32 1x4x6x2", {}, "SPACE_TO_DEPTH in=[0] block_size=0", {"blocks of 0"}},
           {"float32 1x4x6x8", {}, "DEPTH_TO_SPACE in=[0] block_size=2", {"1x8x12x2"}},
           {"float32 1x4x6x8", {}, "DEPTH_TO_SPACE in=[0] block_size=3", {"do not divide 8 channels"}},
           {"float32 4x2x3x1", {ints("2", "2 2"), ints("2x2", "0 1 0 0")}, "BATCH_TO_SPACE_ND in=[0 1 2]", {"1x3x6x1"}},
           {"float32 1x3x6x1", {ints("2", "2 2"), ints("2x2", "0 1 0 0")}, "SPACE_TO_BATCH_ND in=[0 1 2]", {"4x2x3x1"}},
           {"float32 3x2x3x1", {ints("2", "2 2"), ints("2x2", "0 1 0 0")}, "BATCH_TO_SPACE_ND in=[0 1 2]", {"batch 3"}},
       }) {
    check(c);
  }
}

TEST(ShapeInference, StridedSlice) {
  const auto slice = [](std::string_view shape, std::string_view begin, std::string_view end, std::string_view strides,
                        std::string attrs, std::string expected) {
    const auto n = std::count(begin.begin(), begin.end(), ' ') + 1;
    const std::string count = fmt::format("{}", n);
    check({shape,
           {ints(count, begin), ints(count, end), ints(count, strides)},
           "STRIDED_SLICE in=[0 1 2 3] " + attrs,
           {std::move(expected)}});
  };
  slice("float32 5x6", "1 0", "4 6", "2 1", "", "2x6");
  slice("float32 5x6", "1", "-1", "1", "", "3x6");
  slice("float32 5x6", "-1 0", "0 0", "-2 1", "begin_mask=2 end_mask=3", "3x6");
  slice("float32 5x6", "2 0", "0 3", "1 1", "shrink_axis_mask=1", "3");
  slice("float32 5x6", "5 0", "0 3", "1 1", "shrink_axis_mask=1", "index 5 is outside");
  slice("float32 5x6", "0 0 2", "0 0 4", "1 1 1", "new_axis_mask=2 ellipsis_mask=1", "5x1x2");
  slice("float32 2x3x4x5", "0 1", "0 2", "1 1", "ellipsis_mask=1", "2x3x4x1");
  slice("float32 5x6", "1 2", "2 3", "1 1", "offset=true", "2x3");
  slice("float32 5x6", "1 2", "1 3", "1 1", "", "0x1");
  slice("float32 5", "1 2", "1 3", "1 1", "", "more ranges than the 1 dimensions");
  slice("float32 5", "1", "2", "0", "", "stride 0");
}

TEST(ShapeInference, KeepsDeclaredShapesOfWhatItCannotKnow) {
  check({"float32 7", {}, "\"CUSTOM\" in=[0]", {"7"}});
  for (const char* op : {"SPLIT in=[0 1] out=[2 3] count=2", "SPLIT_V in=[1 0 0] out=[2 3]"}) {
    auto graph = parse(std::string("tensor 0 \"a\" int32 scalar\ntensor 1 \"b\" int32 4x6\ntensor 2 \"c\" int32 5\n"
                                   "tensor 3 \"d\" int32 5\ninputs 0 1\noutputs 2 3\nop 0 ") +
                       op);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto result = infer_shapes(*graph);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(graph->tensors[2].shape, (Shape{5})) << op;
  }
  for (const bool known : {false, true}) {
    auto graph =
        parse(fmt::format("tensor 0 \"a\" boolean 2x3{}\ntensor 1 \"at\" int64 5x9\n{}outputs 1\n"
                          "op 0 WHERE in=[0] out=[1]",
                          known ? " const=[1 0 1 0 0 1]" : "", known ? "" : "inputs 0\n"));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    ASSERT_TRUE(infer_shapes(*graph).ok());
    EXPECT_EQ(graph->tensors[1].shape, known ? (Shape{3, 2}) : (Shape{5, 9}));
  }
  auto graph = parse(
      "tensor 0 \"a\" float32 1x2x2x1\ntensor 1 \"size\" int32 2\ntensor 2 \"b\" float32 1x5x5x1\n"
      "inputs 0 1\noutputs 2\nop 0 RESIZE_BILINEAR in=[0 1] out=[2]");
  ASSERT_TRUE(graph.ok() && infer_shapes(*graph).ok());
  EXPECT_EQ(graph->tensors[2].shape, (Shape{1, 5, 5, 1}));
  EXPECT_TRUE(verify(*graph).ok());
}

}  // namespace
}  // namespace skillet::ir
