#include "tools/layer_file.h"

#include <gtest/gtest.h>

#include "tools/layer_graph.h"

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
  EXPECT_EQ(with("-1").error().message, "line 2: column ddr_cycles: '-1' is no whole number from 0 to 4294967296");
}

// Errors name line and column.
TEST(LayerFile, BadFiles) {
  const auto row = [](std::string_view fields) { return message(std::string(kNetwork) + std::string(fields) + "\n"); };
  EXPECT_EQ(message(""), "line 1: no header line");
  EXPECT_EQ(message("id,op\n"), "line 1: column in_h is missing");
  EXPECT_EQ(message(std::string(kNetwork)).substr(0, 7), "line 2:");
  EXPECT_EQ(message("id," + std::string(kNetwork)), "line 1: column id is there twice");
  EXPECT_EQ(row("1,c,conv"), "line 2: 3 fields, the header has 18");
  const std::string_view good = "1,c,conv,,8,8,3,4,4,16,3,3,2,2,1,1,relu6,432";
  EXPECT_EQ(row(good), "");
  struct Case {
    std::string_view from, to, words;
  };
  for (const Case& c :
       {Case{"8,8,3", "nan,8,3", "line 2: column in_h: 'nan' is no whole number from 0 to 65536"},
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
  EXPECT_EQ(row(std::string(good) + "\n" + std::string(good)), "line 3: column id: 1 is there twice");
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
  EXPECT_EQ(made->left_out, 1U);             // the activation, which no operation here has
  EXPECT_EQ(made->graph.inputs.size(), 2U);  // the image, and what the activation gives
}

TEST(LayerGraph, LeavesOutWhatItCannotSay) {
  sim::Layer odd = conv(1, {}, 3, 16);
  odd.out_h = 3;  // neither of the two ways to pad
  EXPECT_FALSE(graph_of({&odd, 1}).ok());
  sim::Layer huge = conv(1, {}, 60000, 60000);
  EXPECT_FALSE(graph_of({&huge, 1}).ok());
}

}  // namespace
}  // namespace skillet::tools
