#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "graph/ir/graph.h"

namespace skillet::ir {
namespace {

constexpr std::string_view kText = R"(graph "net \"1\"\x0a"
tensor 0 "in" uint8 1x8x8x3 scale=0.0078125 zero=128
tensor 1 "filter" int8 2x1x1x3 scale=[0.5 0.25] zero=0 const=[1 2 3 -4 -5 -6]
tensor 2 "dw" int8 1x3x3x2 scale=[0.5 0.25] zero=[1 -2] axis=3 const=zeros:18
tensor 3 "f" float32 3 const=[0.1 -1e-30 bits:7fc00000]
tensor 4 "state" int16 1x20 variable
tensor 5 "s" string 1 const=hex:00ff
tensor 6 "scalar" int64 scalar const=[-9223372036854775808]
tensor 7 "empty" int32 0 const=[]
inputs 0 4
outputs 5
op 0 CONV_2D in=[0 1 -] out=[4] padding=valid rows=[-2 1] stride_h=2 stride_w=3 activation=relu6
op 1 "Detect \x80 it" in=[4 0] out=[5 6] source=17
op 2 RESHAPE in=[] out=[] shape=[1 -1]
op 3 STRIDED_SLICE in=[0] out=[] begin_mask=3 offset=true
op 4 SOFTMAX in=[0] out=[] beta=0.3
op 5 ADD in=[0 0] out=[4] source=-1
)";

TEST(Text, RoundTrips) {
  const auto graph = parse(kText);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(print(*graph), kText);
  EXPECT_EQ(graph->name, "net \"1\"\n");
  EXPECT_EQ(graph->tensors[1].quant.zero_points, (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(graph->tensors[1].values<int8_t>()[5], -6);
  EXPECT_EQ(graph->ops[0].as<ConvAttrs>().stride_w, 3);
  EXPECT_EQ(graph->ops[0].as<ConvAttrs>().rows, (RowPads{-2, 1}));
  EXPECT_EQ(graph->ops[0].inputs[2], kNoTensor);
  EXPECT_EQ(graph->ops[1].opaque_name, "Detect \x80 it");
}

TEST(Text, LongConstantsBecomeAHashAndAreReadBackAsZeros) {
  Graph graph;
  graph.add_tensor({.name = "c", .dtype = DType::int8, .shape = {17}});
  set_constant(graph.tensors[0], Bytes(17, 1));
  const std::string text = print(graph);
  EXPECT_NE(text.find("const=xxh3:"), std::string::npos) << text;
  EXPECT_NE(text.find(":17\n"), std::string::npos) << text;
  const auto again = parse(text);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->tensors[0].values<int8_t>(), std::vector<int8_t>(17));
  EXPECT_NE(print(*again).find("const=zeros:17"), std::string::npos);
}

TEST(Text, RandomConstantsAreTheSameForTheSameSeed) {
  const auto read = [](std::string_view type, std::string_view value) {
    return parse(fmt::format("tensor 0 \"c\" {} 40x50 const={}", type, value));
  };
  const auto a = read("int8", "random:1"), same = read("int8", "random:1"), other = read("int8", "random:2");
  ASSERT_TRUE(a.ok() && same.ok() && other.ok());
  EXPECT_EQ(a->tensors[0].values<int8_t>(), same->tensors[0].values<int8_t>());
  EXPECT_NE(a->tensors[0].values<int8_t>(), other->tensors[0].values<int8_t>());
  const auto sums = read("int32", "random:1");
  ASSERT_TRUE(sums.ok());
  const auto [least, most] = std::ranges::minmax(sums->tensors[0].values<int32_t>());
  EXPECT_TRUE(least < -4000 && least >= -4096 && most > 4000 && most <= 4096) << least << " " << most;
  for (const auto& [type, value] : {std::pair("float32", "random:1"), {"int8", "random:"}, {"int8", "random:x"}})
    EXPECT_FALSE(read(type, value).ok()) << type << " " << value;
}

TEST(Text, ReadsHandWrittenText) {
  const auto graph = parse("  # comment\n\ntensor 0 \"a # b\" int8  2x2  scale=1 const=zeros # end");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->tensors[0].name, "a # b");
  EXPECT_EQ(graph->tensors[0].data.size(), 4U);
  EXPECT_EQ(graph->tensors[0].quant.zero_points, std::vector<int32_t>{0});
}

TEST(Text, RefusesWithTheLine) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"graph", "line 1: unknown line"},
      {"\nnonsense 1", "line 2: unknown line: 'nonsense 1'"},
      {"tensor 1 \"a\" int8 1", "number 1 should be 0"},
      {"tensor 0 \"a\" int8", "fields are missing"},
      {"tensor 0 \"a int8 1", "not closed"},
      {"tensor 0 \"a\" int3 1", "no such type: 'int3'"},
      {"tensor 0 \"a\" int8 1x", "shape: expected a number"},
      {"tensor 0 \"a\" int8 99999999999", "shape: expected a number"},
      {"tensor 0 \"a\" int8 1 scale=x", "expected a number: 'x'"},
      {"tensor 0 \"a\" int8 1 colour=red", "unknown field"},
      {"tensor 0 \"a\" int8 1 const=[300]", "expected a number: '300'"},
      {"tensor 0 \"a\" int8 1 const=hex:0", "pairs of hex digits"},
      {"tensor 0 \"a\" int8 1 const=hex:0g", "hex digits"},
      {"tensor 0 \"a\" float64 1 const=[1]", "written as hex"},
      {"tensor 0 \"a\" int8 1 const=zeros:99999999999", "too large"},
      {"tensor 0 \"a\" float32 1 const=[bits:xyz]", "bits of a float"},
      {"tensor 0 \"\\x\" int8 1", "\\x"},
      {"op 0 CONV_3D_ in=[] out=[]", "no such operation: 'CONV_3D_'"},
      {"op 0 ADD in=[1 out=[]", "not closed"},
      {"op 0 ADD in=1", "expected a list"},
      {"op 0 ADD stride_h=1", "unknown field"},
      {"op 0 CONV_2D padding=full", "same or valid"},
      {"op 0 CONV_2D rows=[1]", "expected [top bottom]: '[1]'"},
      {"op 0 CONV_2D activation=gelu", "no such activation"},
      {"op 0 MEAN keep_dims=1", "true or false"},
      {"inputs a", "expected a number"},
  };
  for (const auto& [text, message] : cases) {
    const auto graph = parse(text);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_NE(graph.error().message.find(message), std::string::npos) << text << "\n" << graph.error().message;
  }
}

}  // namespace
}  // namespace skillet::ir
