#include "tools/time/layer_file.h"

#include <gtest/gtest.h>

#include "graph/ir/graph.h"
#include "tools/time/layer_graph.h"

namespace skillet::tools {
namespace {

constexpr std::string_view kNetwork =
    "id,name,op,inputs,in_h,in_w,in_c,out_h,out_w,out_c,kh,kw,sh,sw,dh,dw,act,weight_elems\n";
constexpr std::string_view kTable = "id,op,in_c,in_h,in_w,out_c,out_h,out_w,kh,kw,stride,groups,act,fused_add,dtype\n";

std::string message(std::string text) {
  const auto file = parse_layers(text, "x");
  return file.ok() ? "" : file.error().message;
}

TEST(LayerFile, Networks) {
  const auto file = parse_layers(std::string(kNetwork) +
                                     "0,in,input,,8,8,3,8,8,3,0,0,1,1,1,1,none,0\r\n"
                                     "1,c,conv,0,8,8,3,4,4,16,3,3,2,2,1,1,relu6,432\n\n",
                                 "net");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->fusion, sim::Fusion::network);
  ASSERT_EQ(file->layers.size(), 2U);
  EXPECT_EQ(file->layers[1].inputs, std::vector<int>{0});
  EXPECT_EQ(file->layers[1].stride, 2);
  EXPECT_EQ(file->layers[1].weights, 432);
}

TEST(LayerFile, UnknownKindsAreTold) {
  const auto unknown = [](std::string_view op) {
    return parse_layers(fmt::format("{}1,c,{},,8,8,3,4,4,16,3,3,2,2,1,1,relu6,432\n", kNetwork, op), "x")->unknown;
  };
  EXPECT_EQ(unknown("con"), std::vector<std::string>{"con"});
  EXPECT_TRUE(unknown("conv").empty());
}

TEST(LayerFile, Tables) {
  const auto file = parse_layers(std::string(kTable) + "7,conv,16,8,8,32,8,8,3,3,1,1,swish,1,fp16\n", "table");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->fusion, sim::Fusion::alone);
  EXPECT_TRUE(file->layers[0].fused_add && file->layers[0].fp16);
  EXPECT_EQ(file->layers[0].weights, 9 * 16 * 32);
}

TEST(LayerFile, TablesMayTellOfTheirMemory) {
  std::string text(kTable);
  text.insert(text.size() - 1, ",ddr_cycles");
  const auto with = [&](std::string_view cycles) {
    return parse_layers(fmt::format("{}7,conv,16,8,8,32,8,8,3,3,1,1,none,0,i8,{}\n", text, cycles), "table");
  };
  EXPECT_EQ(with("851599")->layers[0].memory_cycles, 851599);
  EXPECT_EQ(with("")->layers[0].memory_cycles, 0);
  EXPECT_EQ(with("-1").error().message, "line 2: column ddr_cycles: '-1' is not a whole number from 0 to 4294967296");
}

// Errors name line and column.
TEST(LayerFile, BadFiles) {
  const auto row = [](std::string_view fields) { return message(std::string(kNetwork) + std::string(fields) + "\n"); };
  EXPECT_EQ(message(""), "line 1: no header line");
  EXPECT_EQ(message("id,op\n"), "line 1: column in_h is missing");
  EXPECT_EQ(message(std::string(kNetwork)).substr(0, 7), "line 2:");
  EXPECT_EQ(message("id," + std::string(kNetwork)), "line 1: column id occurs twice");
  EXPECT_EQ(row("1,c,conv"), "line 2: 3 fields, but the header has 18");
  const std::string_view good = "1,c,conv,,8,8,3,4,4,16,3,3,2,2,1,1,relu6,432";
  EXPECT_EQ(row(good), "");
  struct Case {
    std::string_view from, to, words;
  };
  for (const Case& c :
       {Case{"8,8,3", "nan,8,3", "line 2: column in_h: 'nan' is not a whole number from 0 to 65536"},
        Case{"8,8,3", "8,1e9,3", "column in_w: '1e9'"}, Case{"8,8,3", "8,8,-3", "column in_c: '-3'"},
        Case{"8,8,3", "8,8,3.5", "column in_c: '3.5'"}, Case{"8,8,3", "99999999999999999999,8,3", "column in_h"},
        Case{"8,8,3", "65536,65536,65536", "elements or weights"}, Case{"8,8,3", "0,8,3", "a size of 0"},
        Case{"3,3,2", "0,3,2", "a size of 0"}, Case{"3,3,2", "3,3,0", "a stride or dilation of 0"},
        Case{"2,2,1,1,relu6", "2,2,0,1,relu6", "a stride or dilation of 0"},
        Case{",432", ",99999999999", "column weight_elems"},
        Case{"8,8,3,4,4,16,3,3", "8,8,4096,256,256,4096,650,650", "more than 1e+16 products"},
        Case{"conv,,", "conv,5,", "column inputs: no layer before this one has id 5"},
        Case{"conv,,", "conv,x,", "column inputs: 'x'"}, Case{"conv,,", ",,", "column op is empty"},
        Case{"1,c", ",c", "column id is empty"}}) {
    std::string text(good);
    text.replace(text.find(c.from), c.from.size(), c.to);
    EXPECT_NE(row(text).find(c.words), std::string::npos) << text << ": " << row(text);
  }
  EXPECT_EQ(row(std::string(good) + "\n" + std::string(good)), "line 3: column id: 1 occurs twice");
  EXPECT_NE(message(std::string(kTable) + "7,conv,16,8,8,32,8,8,3,3,1,1,none,0,int4\n").find("column dtype: 'int4'"),
            std::string::npos);
  EXPECT_NE(message(std::string(kTable) + "7,conv,16,8,8,32,8,8,3,3,1,1,none,2,i8\n").find("column fused_add: '2'"),
            std::string::npos);
  EXPECT_FALSE(read_layers("no such file.csv").ok());
}

sim::Layer conv(int id, std::vector<int> inputs, int64_t in_c, int64_t out_c) {
  return {.id = id,
          .op = "conv",
          .inputs = std::move(inputs),
          .in_h = 8,
          .in_w = 8,
          .in_c = in_c,
          .out_h = 8,
          .out_w = 8,
          .out_c = out_c,
          .kh = 3,
          .kw = 3,
          .weights = 9 * in_c * out_c};
}

TEST(LayerGraph, IsALegalGraph) {
  sim::Layer add = conv(3, {1, 2}, 16, 16);
  add.op = "add";
  sim::Layer concat = conv(4, {1, 3}, 32, 32);
  concat.op = "concat";
  sim::Layer swish = conv(5, {4}, 32, 8);
  swish.act = "swish";
  const sim::Layer layers[] = {conv(1, {}, 3, 16), conv(2, {1}, 16, 16), add, concat, swish, conv(6, {5}, 8, 8)};
  const auto made = graph_of(layers);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->graph.ops.size(), 6U);
  EXPECT_EQ(made->left_out, 1U);             // the activation, which has no operation here
  EXPECT_EQ(made->graph.inputs.size(), 2U);  // the image, and the output of the activation
}

// A result of one element is one, a result of none is left out without a word.
TEST(LayerGraph, HasResultsOfOneElement) {
  sim::Layer one = conv(1, {}, 3, 1), none = conv(2, {}, 3, 0);
  one.kh = one.kw = 8, one.out_h = one.out_w = 1, one.weights = 8 * 8 * 3;
  const auto made = graph_of(std::vector{one, none});
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_EQ(made->graph.ops.size(), 1U);
  EXPECT_EQ(made->graph.tensor(made->graph.outputs[0]).shape, (ir::Shape{1, 1, 1, 1}));
  EXPECT_EQ(made->left_out, 0U);
}

// Every kind of layer, both kinds of padding, strides, dilation and activations, as the graph's text.
TEST(LayerGraph, SaysWhatTheLayersSay) {
  const auto with = [](sim::Layer layer, auto change) {
    change(layer);
    return layer;
  };
  const sim::Layer layers[] = {
      with(conv(1, {}, 3, 4), [](sim::Layer& l) { l.op = "input"; }),
      with(conv(2, {1}, 3, 4), [](sim::Layer& l) { l.stride = 2, l.out_h = l.out_w = 4, l.act = "relu6"; }),
      with(conv(3, {2}, 4, 4),
           [](sim::Layer& l) { l.op = "dwconv", l.in_h = l.in_w = l.out_h = l.out_w = 4, l.act = "relu"; }),
      with(conv(4, {3}, 4, 5), [](sim::Layer& l) { l.in_h = l.in_w = 4, l.out_h = l.out_w = 2; }),  // no padding
      with(conv(5, {1}, 3, 4), [](sim::Layer& l) { l.dilation = 2, l.out_h = l.out_w = 4; }),
      with(conv(6, {3, 5}, 4, 4),
           [](sim::Layer& l) { l.op = "add", l.in_h = l.in_w = l.out_h = l.out_w = 4, l.act = "relu"; }),
      with(conv(7, {3, 6}, 4, 8), [](sim::Layer& l) { l.op = "concat", l.in_h = l.in_w = l.out_h = l.out_w = 4; }),
      with(conv(8, {7}, 8, 6), [](sim::Layer& l) { l.op = "fc", l.in_h = l.in_w = 4, l.out_h = l.out_w = 1; }),
      with(conv(9, {7}, 8, 8), [](sim::Layer& l) { l.op = "maxpool", l.in_h = l.in_w = l.out_h = l.out_w = 4; }),
      with(conv(10, {3, 4}, 4, 9), [](sim::Layer& l) { l.op = "concat", l.in_h = l.in_w = l.out_h = l.out_w = 4; }),
      with(conv(11, {3}, 4, 8), [](sim::Layer& l) { l.op = "dwconv", l.in_h = l.in_w = l.out_h = l.out_w = 4; }),
      with(conv(12, {9}, 8, 2), [](sim::Layer& l) { l.kh = 1, l.kw = 2, l.in_h = 3, l.out_h = 3, l.out_w = 7; })};
  const auto made = graph_of(layers);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->left_out, 3U);  // the pool, pieces of different sizes, a depthwise layer with more outputs
  EXPECT_EQ(ir::print(made->graph), R"(graph ""
tensor 0 "t0" uint8 1x8x8x3 scale=0.02 zero=128
tensor 1 "t1" uint8 4x3x3x3 scale=0.01 zero=128 const=xxh3:753cffeb38c47cc6:108
tensor 2 "t2" int32 4 scale=0.0002 zero=0 const=[0 0 0 0]
tensor 3 "t3" uint8 1x4x4x4 scale=0.02 zero=128
tensor 4 "t4" uint8 1x3x3x4 scale=0.01 zero=128 const=xxh3:ea41013d6d1ad4c8:36
tensor 5 "t5" int32 4 scale=0.0002 zero=0 const=[0 0 0 0]
tensor 6 "t6" uint8 1x4x4x4 scale=0.02 zero=128
tensor 7 "t7" uint8 5x3x3x4 scale=0.01 zero=128 const=xxh3:57df62c17a01cc5f:180
tensor 8 "t8" int32 5 scale=0.0002 zero=0 const=[0 0 0 0 0]
tensor 9 "t9" uint8 1x2x2x5 scale=0.02 zero=128
tensor 10 "t10" uint8 4x3x3x3 scale=0.01 zero=128 const=xxh3:9e9d8767dc545339:108
tensor 11 "t11" int32 4 scale=0.0002 zero=0 const=[0 0 0 0]
tensor 12 "t12" uint8 1x4x4x4 scale=0.02 zero=128
tensor 13 "t13" uint8 1x4x4x4 scale=0.02 zero=128
tensor 14 "t14" uint8 1x4x4x8 scale=0.02 zero=128
tensor 15 "t15" uint8 1x1x1x128 scale=0.02 zero=128
tensor 16 "t16" uint8 6x1x1x128 scale=0.01 zero=128 const=xxh3:9fe4c17d81750a11:768
tensor 17 "t17" int32 6 scale=0.0002 zero=0 const=[0 0 0 0 0 0]
tensor 18 "t18" uint8 1x1x1x6 scale=0.02 zero=128
tensor 19 "t19" uint8 1x3x8x8 scale=0.02 zero=128
tensor 20 "t20" uint8 2x1x2x8 scale=0.01 zero=128 const=xxh3:b0130db68e2ba9a2:32
tensor 21 "t21" int32 2 scale=0.0002 zero=0 const=[0 0]
tensor 22 "t22" uint8 1x3x7x2 scale=0.02 zero=128
inputs 0 15 19
outputs 9 14 18 22
op 0 CONV_2D in=[0 1 2] out=[3] stride_h=2 stride_w=2 activation=relu6 source=-1
op 1 DEPTHWISE_CONV_2D in=[3 4 5] out=[6] activation=relu source=-1
op 2 CONV_2D in=[6 7 8] out=[9] padding=valid source=-1
op 3 CONV_2D in=[0 10 11] out=[12] padding=valid dilation_h=2 dilation_w=2 source=-1
op 4 ADD in=[6 12] out=[13] activation=relu source=-1
op 5 CONCATENATION in=[6 13] out=[14] axis=3 source=-1
op 6 CONV_2D in=[15 16 17] out=[18] source=-1
op 7 CONV_2D in=[19 20 21] out=[22] padding=valid source=-1
)");
}

TEST(LayerGraph, LeavesOutWhatItCannotSay) {
  sim::Layer odd = conv(1, {}, 3, 16);
  odd.out_h = 3;  // neither kind of padding
  EXPECT_FALSE(graph_of({&odd, 1}).ok());
  sim::Layer multiplied = conv(1, {}, 8, 16);
  multiplied.op = "dwconv";
  const auto refused = graph_of({&multiplied, 1});
  EXPECT_FALSE(refused.ok());
  multiplied.out_c = 8;
  multiplied.dilation = 2;  // a window of 5 rows, without padding
  multiplied.out_h = multiplied.out_w = 4;
  const auto dilated = graph_of({&multiplied, 1});
  EXPECT_TRUE(dilated.ok()) << dilated.error().message;
  sim::Layer huge = conv(1, {}, 60000, 60000);
  EXPECT_FALSE(graph_of({&huge, 1}).ok());
}

}  // namespace
}  // namespace skillet::tools
