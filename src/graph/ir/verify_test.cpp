#include <gtest/gtest.h>

#include "graph/ir/graph.h"

namespace skillet::ir {
namespace {

// A correct small network; each case below breaks one place of it.
constexpr std::string_view kGood = R"(graph "g"
tensor 0 "in" int8 1x8x8x4 scale=0.5 zero=3
tensor 1 "w" int8 6x3x3x4 scale=[1 2 3 4 5 6] zero=0 const=zeros
tensor 2 "b" int32 6 scale=0.5 const=zeros
tensor 3 "conv" int8 1x4x4x6 scale=0.25 zero=-1
tensor 4 "axes" int32 2 const=[1 2]
tensor 5 "mean" int8 1x6 scale=0.25 zero=-1
tensor 6 "fw" int8 10x6 scale=0.125 const=zeros
tensor 7 "fc" int8 1x10 scale=0.25
inputs 0
outputs 7
op 0 CONV_2D in=[0 1 2] out=[3] stride_h=2 stride_w=2
op 1 MEAN in=[3 4] out=[5]
op 2 FULLY_CONNECTED in=[5 6] out=[7]
)";

struct Case {
  std::string_view find, replace, message;
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void check(const Case& c) {
  SCOPED_TRACE(c.replace);
  const auto graph = parse(replaced(std::string(kGood), c.find, c.replace));
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto result = verify(*graph);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find(c.message), std::string::npos) << result.error().message;
}

TEST(Verify, AcceptsGoodGraph) {
  const auto graph = parse(kGood);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto result = verify(*graph);
  EXPECT_TRUE(result.ok()) << result.error().message;
}

TEST(Verify, RefusesBadTensors) {
  for (const Case& c : {
           Case{"1x8x8x4 scale", "1x-8x8x4 scale", "tensor 0 'in' int8 1x-8x8x4: shape 1x-8x8x4 has a negative"},
           {"1x8x8x4 scale", "65536x65536x1x1 scale", "more than 2147483647 elements"},
           {"1x8x8x4 scale", "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1 scale", "17 dimensions"},
           {"b\" int32 6 scale=0.5 const=zeros", "b\" int32 6 const=zeros:23", "tensor 2 'b' int32 6: 23 bytes"},
           {"b\" int32 6 scale=0.5 const=zeros", "b\" int32 6 const=zeros:25", "tensor 2 'b' int32 6: 25 bytes"},
           {"zero=3", "zero=128", "tensor 0 'in' int8 1x8x8x4: zero point 128 is outside -128..127"},
           {"scale=0.5 zero=3", "scale=0 zero=3", "scale 0 is not a positive number"},
           {"scale=0.5 zero=3", "scale=-1 zero=3", "scale -1 is not"},
           {"scale=0.5 zero=3", "scale=bits:7f800000 zero=3", "scale inf is not"},
           {"scale=0.5 zero=3", "scale=0.5 zero=[1 2]", "1 scales but 2 zero points"},
           {"[1 2 3 4 5 6] zero=0", "[1 2 3 4 5 6] zero=0 axis=4", "dimension 4, which it does not have"},
           {"[1 2 3 4 5 6] zero=0", "[1 2 3 4 5 6] zero=0 axis=-1", "dimension -1"},
           {"[1 2 3 4 5 6] zero=0", "[1 2 3 4 5] zero=0", "5 scales for 6 channels"},
           {"b\" int32 6 scale=0.5", "b\" float32 6 scale=0.5", "cannot be quantized"},
           {"const=zeros", "const=zeros:23 variable", "23 bytes of contents"},
       }) {
    check(c);
  }
}

// TensorFlow Lite accepts these; any other scale 0 is an error.
TEST(Verify, TakesScaleZeroOfAChannelOfWeightsAndOfInt16Constants) {
  constexpr std::string_view kTensor = R"(tensor 0 "w" int8 2x1 scale=[0 1] zero=0 axis=0 const=[1 2])";
  const auto is_taken = [&](std::string_view from, std::string_view to) {
    std::string text(kTensor);
    if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
    const auto graph = parse(text);
    EXPECT_TRUE(graph.ok()) << text;
    return graph.ok() && verify(*graph).ok();
  };
  EXPECT_TRUE(is_taken("", ""));
  EXPECT_TRUE(is_taken("[0 1]", "[0 0]"));
  EXPECT_FALSE(is_taken("[0 1]", "0"));
  EXPECT_FALSE(is_taken("[0 1]", "[0 -1]"));
  EXPECT_FALSE(is_taken("int8", "uint8"));
  EXPECT_FALSE(is_taken(" const=[1 2]", ""));
  EXPECT_TRUE(is_taken("int8 2x1 scale=[0 1] zero=0 axis=0", "int16 2x1 scale=0 zero=0"));
  EXPECT_FALSE(is_taken("int8 2x1 scale=[0 1] zero=0 axis=0 const=[1 2]", "int16 2x1 scale=0 zero=0"));
}

TEST(Verify, BoundsTheTotalSize) {
  Graph graph;
  for (int i = 0; i < 20; ++i) graph.add_tensor({.dtype = DType::int32, .shape = {1 << 30}});
  EXPECT_NE(verify(graph).error().message.find("tensor 16 '' int32 1073741824: all tensors together exceed"),
            std::string::npos);
  graph.tensors.resize(16);
  EXPECT_TRUE(verify(graph).ok()) << "64 GiB";
  graph.add_tensor({.dtype = DType::int8, .shape = {1}});
  EXPECT_FALSE(verify(graph).ok()) << "a byte more";
}

TEST(Verify, RefusesBadOrder) {
  for (const Case& c : {
           Case{"in=[0 1 2]", "in=[0 1 5]", "op 0 CONV_2D -> 'conv': tensor 5 'mean' int8 1x6 is used before"},
           {"in=[0 1 2]", "in=[8 1 2]", "op 0 CONV_2D -> 'conv': tensor index 8 is outside the 8 tensors"},
           {"in=[0 1 2]", "in=[-2 1 2]", "tensor index -2"},
           {"out=[5]", "out=[3]", "op 1 MEAN -> 'conv': tensor 3 'conv' int8 1x4x4x6 already has a value"},
           {"out=[5]", "out=[4]", "already has a value"},
           {"out=[5]", "out=[0]", "already has a value"},
           {"out=[5]", "out=[-]", "tensor index -1"},
           {"inputs 0", "inputs 0 0", "graph input: tensor 0 'in' int8 1x8x8x4 already has a value"},
           {"inputs 0", "inputs 9", "graph input: tensor index 9"},
           {"inputs 0", "inputs", "op 0 CONV_2D -> 'conv': tensor 0 'in' int8 1x8x8x4 is used before"},
           {"outputs 7", "outputs -1", "graph output: tensor index -1"},
           {"op 2 FULLY_CONNECTED in=[5 6] out=[7]\n", "", "graph output: tensor 7 'fc' int8 1x10 is used before"},
       }) {
    check(c);
  }
}

TEST(Verify, RefusesBadOps) {
  for (const Case& c : {
           Case{"in=[0 1 2]", "in=[0]", "op 0 CONV_2D -> 'conv': 1 inputs, expected 2 to 3"},
           {"in=[0 1 2]", "in=[0 - 2]", "input 1 is missing"},
           {"stride_w=2", "stride_w=0", "stride 2x0 is outside 1..32768"},
           {"stride_w=2", "stride_w=2 dilation_h=-1", "dilation -1x1"},
           {"stride_w=2", "stride_w=1", "should have shape 1x4x8x6"},
           {"int32 6 scale", "int32 5 scale", "bias tensor 2 'b' int32 5 does not have one value for each of the 6"},
           {"b\" int32", "b\" int16", "bias tensor 2 'b' int16 6 has a type that does not fit int8 input"},
           {"axes\" int32 2 const=[1 2]", "axes\" int32 4097 const=zeros", "has more than 4096 elements"},
           {"axes\" int32", "axes\" int16", "input tensor 4 'axes' int16 2 must be int32 or int64"},
           {"6x3x3x4", "6x3x3x3", "filter tensor 1 'w' int8 6x3x3x3 does not fit 4 input channels"},
           {"int8 6x3x3x4 scale=[1 2 3 4 5 6]", "int8 6x3x3x4 scale=[1 2 3 4] axis=3", "dimension 3, expected 0"},
           {" scale=0.25 zero=-1", "", "tensor 3 'conv' int8 1x4x4x6 has no quantization"},
           {"[1 2]", "[1 4]", "op 1 MEAN -> 'mean': axis 4 is outside the 4 dimensions"},
           {"10x6", "10x5", "input tensor 5 'mean' int8 1x6 is not a whole number of rows of 5 values"},
           {"fc\" int8 1x10", "fc\" int8 1x9", "op 2 FULLY_CONNECTED -> 'fc': output tensor 7 'fc' int8 1x9 should"},
       }) {
    check(c);
  }
  check({"\"conv\" int8 1x4x4x6 scale=0.25 zero=-1", "\"conv\" uint8 1x4x4x6 scale=0.25 zero=1",
         "tensor 3 'conv' uint8 1x4x4x6: its type differs from the first input's, int8"});
}

TEST(Verify, RefusesMissingOutputs) {
  const auto graph = parse("tensor 0 \"a\" int8 1\ninputs 0\nop 0 RELU in=[0] out=[]");
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(verify(*graph).error().message, "op 0 RELU: 0 outputs, expected 1");
}

TEST(Verify, RefusesAttributesOfAnotherKind) {
  auto graph = parse(kGood);
  ASSERT_TRUE(graph.ok());
  graph->ops[0].attrs = PoolAttrs{};
  EXPECT_EQ(verify(*graph).error().message, "op 0 CONV_2D -> 'conv': attributes of another kind of op");
}

}  // namespace
}  // namespace skillet::ir
