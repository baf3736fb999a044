// Kernels against explicit results: small cases of each definition where bugs are likely. Ties, negative numbers and
// axes, batches, repeated rows, limits. Inputs and outputs have their values in the text.
#include "graph/ref/testing/definition.h"

#include <gtest/gtest.h>

namespace skillet::ref {
namespace {

TEST(Definition, OfRowsTruthAndFloors) {
  for (const char* text : {
           R"(tensor 0 "in" int32 2x3 const=[1 2 3 4 5 6]
tensor 1 "at" int32 3 const=[1 0 1]
tensor 2 "out" int32 3x3 const=[4 5 6 1 2 3 4 5 6]
inputs 0
outputs 2
op 0 GATHER in=[0 1] out=[2] axis=0)",
           R"(tensor 0 "in" boolean 3 const=[0 1 0]
tensor 1 "out" boolean 3 const=[1 0 1]
inputs 0
outputs 1
op 0 LOGICAL_NOT in=[0] out=[1])",
           R"(tensor 0 "a" int32 6 const=[7 -7 7 -7 6 9]
tensor 1 "b" int32 6 const=[2 2 -2 -2 -3 1]
tensor 2 "out" int32 6 const=[3 -4 -4 3 -2 9]
inputs 0 1
outputs 2
op 0 FLOOR_DIV in=[0 1] out=[2])",
       })
    expect_values(text);
}

TEST(Definition, OfPicking) {
  for (const char* text : {
           R"(tensor 0 "is" boolean 2x3 const=[0 1 0 1 0 1]
tensor 1 "where" int64 3x2 const=[0 1 1 0 1 2]
outputs 1
op 0 WHERE in=[0] out=[1])",
           R"(tensor 0 "in" int32 2x3 const=[1 5 5 7 7 2]
tensor 1 "axis" int32 scalar const=[1]
tensor 2 "out" int64 2 const=[1 0]
inputs 0
outputs 2
op 0 ARG_MAX in=[0 1] out=[2])",
           R"(tensor 0 "in" int32 2x3 const=[5 1 1 2 7 2]
tensor 1 "axis" int32 scalar const=[-1]
tensor 2 "out" int32 2 const=[1 0]
inputs 0
outputs 2
op 0 ARG_MIN in=[0 1] out=[2])",
           R"(tensor 0 "in" float32 2x2x2 const=[1 -9 3 -4 5 -6 2 -8]
tensor 1 "axis" int32 scalar const=[1]
tensor 2 "out" int32 2x2 const=[1 1 0 0]
inputs 0
outputs 2
op 0 ARG_MAX in=[0 1] out=[2])",
           R"(tensor 0 "in" int32 2x4 const=[3 9 9 -2 0 -5 -1 0]
tensor 1 "k" int32 scalar const=[3]
tensor 2 "values" int32 2x3 const=[9 9 3 0 0 -1]
tensor 3 "at" int32 2x3 const=[1 2 0 0 3 2]
inputs 0
outputs 2 3
op 0 TOPK_V2 in=[0 1] out=[2 3])",
           R"(tensor 0 "in" int32 2x3x2 const=[0 1 2 3 4 5 6 7 8 9 10 11]
tensor 1 "at" int32 2x2 const=[2 0 1 1]
tensor 2 "out" int32 2x2x2 const=[4 5 0 1 8 9 8 9]
inputs 0 1
outputs 2
op 0 GATHER in=[0 1] out=[2] axis=1 batch_dims=1)",
           R"(tensor 0 "in" int32 2x3x2 const=[0 1 2 3 4 5 6 7 8 9 10 11]
tensor 1 "at" int16 2x2 const=[2 0 1 1]
tensor 2 "out" int32 2x2x2 const=[4 5 0 1 8 9 8 9]
inputs 0 1
outputs 2
op 0 GATHER in=[0 1] out=[2] axis=-2 batch_dims=-1)",
           R"(tensor 0 "in" int8 2x3 const=[1 2 3 4 5 6]
tensor 1 "at" int64 2 const=[2 0]
tensor 2 "out" int8 2x2 const=[3 1 6 4]
inputs 0 1
outputs 2
op 0 GATHER in=[0 1] out=[2] axis=-1)",
           R"(tensor 0 "in" int32 2x2x2 const=[0 1 2 3 4 5 6 7]
tensor 1 "at" int32 3x2 const=[1 0 0 1 1 1]
tensor 2 "out" int32 3x2 const=[4 5 2 3 6 7]
inputs 0 1
outputs 2
op 0 GATHER_ND in=[0 1] out=[2])",
           R"(tensor 0 "at" int32 2x2 const=[0 2 -1 1]
tensor 1 "depth" int32 scalar const=[3]
tensor 2 "on" int32 scalar const=[7]
tensor 3 "off" int32 scalar const=[5]
tensor 4 "out" int32 2x3x2 const=[7 5 5 5 5 7 5 5 5 7 5 5]
inputs 0 2 3
outputs 4
op 0 ONE_HOT in=[0 1 2 3] out=[4] axis=-2)",
           R"(tensor 0 "at" int64 2 const=[2 0]
tensor 1 "depth" int32 scalar const=[3]
tensor 2 "on" uint8 scalar const=[1]
tensor 3 "off" uint8 scalar const=[0]
tensor 4 "out" uint8 2x3 const=[0 0 1 1 0 0]
inputs 0 2 3
outputs 4
op 0 ONE_HOT in=[0 1 2 3] out=[4] axis=-1)",
           R"(tensor 0 "in" int32 2x3 const=[1 2 3 4 5 6]
tensor 1 "axes" int32 1 const=[-1]
tensor 2 "out" int32 2x3 const=[3 2 1 6 5 4]
inputs 0
outputs 2
op 0 REVERSE_V2 in=[0 1] out=[2])",
           R"(tensor 0 "if" boolean 2 const=[1 0]
tensor 1 "a" int32 2x2 const=[1 2 3 4]
tensor 2 "b" int32 2x2 const=[5 6 7 8]
tensor 3 "out" int32 2x2 const=[1 2 7 8]
inputs 0 1 2
outputs 3
op 0 SELECT in=[0 1 2] out=[3])",
           R"(tensor 0 "if" boolean 2 const=[1 0]
tensor 1 "a" int32 2x1 const=[1 3]
tensor 2 "b" int32 2x2 const=[5 6 7 8]
tensor 3 "out" int32 2x2 const=[1 6 3 8]
inputs 0 1 2
outputs 3
op 0 SELECT_V2 in=[0 1 2] out=[3])",
       })
    expect_values(text);
}

TEST(Definition, OfIntegerArithmetic) {
  for (const char* text : {
           R"(tensor 0 "a" int32 10 const=[7 -7 7 -7 6 -6 5 0 -2147483648 -2147483648]
tensor 1 "b" int32 10 const=[2 2 -2 -2 3 3 0 -4 -1 2]
tensor 2 "out" int32 10 const=[3 -4 -4 3 2 -2 0 0 -2147483648 -1073741824]
inputs 0 1
outputs 2
op 0 FLOOR_DIV in=[0 1] out=[2])",
           R"(tensor 0 "a" int32 10 const=[7 -7 7 -7 6 -6 5 0 -2147483648 8]
tensor 1 "b" int32 10 const=[3 3 -3 -3 3 3 0 -4 -1 -1]
tensor 2 "out" int32 10 const=[1 2 -2 -1 0 0 0 0 0 0]
inputs 0 1
outputs 2
op 0 FLOOR_MOD in=[0 1] out=[2])",
           R"(tensor 0 "a" int64 4 const=[10000000007 -7 7 -9223372036854775808]
tensor 1 "b" int64 4 const=[10000000000 4 -4 -1]
tensor 2 "out" int64 4 const=[7 1 -1 0]
inputs 0 1
outputs 2
op 0 FLOOR_MOD in=[0 1] out=[2])",
           R"(tensor 0 "a" float32 5 const=[7 -7 7 -7 1]
tensor 1 "b" float32 5 const=[3 3 -3 -3 0.75]
tensor 2 "out" float32 5 const=[1 2 -2 -1 0.25]
inputs 0 1
outputs 2
op 0 FLOOR_MOD in=[0 1] out=[2])",
           R"(tensor 0 "a" float32 4 const=[7 -7 7 1]
tensor 1 "b" float32 4 const=[2 2 -2 0.75]
tensor 2 "out" float32 4 const=[3 -4 -4 1]
inputs 0 1
outputs 2
op 0 FLOOR_DIV in=[0 1] out=[2])",
           R"(tensor 0 "a" int32 2x1x2 const=[1 2 2147483647 4]
tensor 1 "b" int32 3x1 const=[10 20 30]
tensor 2 "out" int32 2x3x2 const=[11 12 21 22 31 32 -2147483639 14 -2147483629 24 -2147483619 34]
inputs 0 1
outputs 2
op 0 ADD in=[0 1] out=[2])",
           R"(tensor 0 "a" int32 2x2 const=[5 -3 7 0]
tensor 1 "b" int32 2 const=[2 -4]
tensor 2 "out" int32 2x2 const=[9 1 25 16]
inputs 0 1
outputs 2
op 0 SQUARED_DIFFERENCE in=[0 1] out=[2])",
           R"(tensor 0 "a" int8 3 scale=0.5 zero=1 const=[5 -3 101]
tensor 1 "b" int8 3 scale=0.25 zero=-2 const=[2 -6 100]
tensor 2 "out" int8 3 scale=1 zero=3 const=[4 4 127]
inputs 0 1
outputs 2
op 0 SQUARED_DIFFERENCE in=[0 1] out=[2])",
           R"(tensor 0 "in" int32 2x2x2 const=[1 2 3 4 5 6 7 8]
tensor 1 "axis" int32 scalar const=[1]
tensor 2 "out" int32 2x2x2 const=[1 2 4 6 5 6 12 14]
inputs 0
outputs 2
op 0 CUMSUM in=[0 1] out=[2])",
           R"(tensor 0 "in" int32 2x3 const=[1 2 3 4 5 6]
tensor 1 "axis" int32 scalar const=[-1]
tensor 2 "out" int32 2x3 const=[5 3 0 11 6 0]
inputs 0
outputs 2
op 0 CUMSUM in=[0 1] out=[2] exclusive=true reverse=true)",
           R"(tensor 0 "in" int32 2x2x3 const=[1 2 3 4 5 6 7 8 9 -1 -2 -3]
tensor 1 "axes" int32 2 const=[0 -1]
tensor 2 "out" int32 2 const=[30 9]
inputs 0
outputs 2
op 0 SUM in=[0 1] out=[2])",
           R"(tensor 0 "in" int32 2x2 const=[3 -4 5 2]
tensor 1 "axes" int32 1 const=[0]
tensor 2 "out" int32 1x2 const=[15 -8]
inputs 0
outputs 2
op 0 REDUCE_PROD in=[0 1] out=[2] keep_dims=true)",
       })
    expect_values(text);
}

TEST(Definition, OfExtremes) {
  for (const char* text : {
           R"(tensor 0 "in" int8 2x2 const=[3 -4 -128 -2]
tensor 1 "axes" int32 1 const=[1]
tensor 2 "out" int8 2 const=[3 -2]
inputs 0
outputs 2
op 0 REDUCE_MAX in=[0 1] out=[2])",
           R"(tensor 0 "in" boolean 2x2 const=[0 0 0 1]
tensor 1 "axes" int32 1 const=[1]
tensor 2 "out" boolean 2 const=[0 1]
inputs 0
outputs 2
op 0 REDUCE_ANY in=[0 1] out=[2])",
           R"(tensor 0 "a" int64 3 const=[-9223372036854775808 5 -1]
tensor 1 "b" int64 3 const=[0 5 4294967295]
tensor 2 "out" boolean 3 const=[0 1 0]
inputs 0 1
outputs 2
op 0 GREATER_EQUAL in=[0 1] out=[2])",
           R"(tensor 0 "a" int32 2x2 const=[1 2 3 4]
tensor 1 "b" int32 2x2 const=[10 20 30 40]
tensor 2 "out" int32 2x2 const=[12 24 36 48]
inputs 0 1
outputs 2
op 0 ADD_N in=[0 1 0] out=[2])",
       })
    expect_values(text);
}

TEST(Definition, OfRealArithmetic) {
  for (
      const char* text : {
          R"(tensor 0 "in" float32 2x2x2 const=[1 2 3 4 5 6 7 8]
tensor 1 "axes" int32 2 const=[0 2]
tensor 2 "out" float32 2 const=[3.5 5.5]
inputs 0
outputs 2
op 0 MEAN in=[0 1] out=[2])",
          R"(tensor 0 "in" float32 2x2 const=[1 2 3 4]
tensor 1 "axes" int32 1 const=[0]
tensor 2 "out" float32 2 const=[4 6]
inputs 0
outputs 2
op 0 SUM in=[0 1] out=[2])",
          R"(tensor 0 "in" float32 2x2 const=[0 0 3 3]
tensor 1 "out" float32 2x2 const=[0.5 0.5 0.5 0.5]
inputs 0
outputs 1
op 0 SOFTMAX in=[0] out=[1] beta=2)",
          R"(tensor 0 "in" float32 2x2 const=[3 4 0 -2]
tensor 1 "out" float32 2x2 const=[0.6 0.8 0 -1]
inputs 0
outputs 1
op 0 L2_NORMALIZATION in=[0] out=[1])",
          R"(tensor 0 "in" float32 2x1x2x1 const=[0 8 100 104]
tensor 1 "size" int32 2 const=[1 5]
tensor 2 "out" float32 2x1x5x1 const=[0 2 4 6 8 100 101 102 103 104]
inputs 0
outputs 2
op 0 RESIZE_BILINEAR in=[0 1] out=[2] align_corners=true)",
          R"(tensor 0 "in" int8 2x1x2x1 scale=1 const=[0 8 100 104]
tensor 1 "size" int32 2 const=[1 4]
tensor 2 "out" int8 2x1x4x1 scale=1 const=[0 2 6 8 100 101 103 104]
inputs 0
outputs 2
op 0 RESIZE_BILINEAR in=[0 1] out=[2] half_pixel_centers=true)",
          R"(tensor 0 "in" float32 1x1x3x1 const=[1 5 9]
tensor 1 "size" int32 2 const=[1 2]
tensor 2 "out" float32 1x1x2x1 const=[1 9]
inputs 0
outputs 2
op 0 RESIZE_BILINEAR in=[0 1] out=[2] align_corners=true)",
          R"(tensor 0 "in" int8 1x1x2x1 scale=1 const=[0 127]
tensor 1 "size" int32 2 const=[1 7]
tensor 2 "out" int8 1x1x7x1 scale=1 const=[0 36 73 109 127 127 127]
inputs 0
outputs 2
op 0 RESIZE_BILINEAR in=[0 1] out=[2])",
          R"(tensor 0 "in" float32 2x2 const=[5 5 1000 0]
tensor 1 "out" float32 2x2 const=[-0.69314718 -0.69314718 0 -1000]
inputs 0
outputs 1
op 0 LOG_SOFTMAX in=[0] out=[1])",
          R"(tensor 0 "in" int8 1x8x8x1 scale=3.7252903e-09 zero=-128 const=[127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127 127]
tensor 1 "axes" int32 2 const=[1 2]
tensor 2 "out" int8 1x1 scale=1 zero=5 const=[5]
inputs 0
outputs 2
op 0 MEAN in=[0 1] out=[2])",
          R"(tensor 0 "in" float32 1x1x3x1 const=[1 5 9]
tensor 1 "size" int32 2 const=[1 1]
tensor 2 "out" float32 1x1x1x1 const=[1]
inputs 0
outputs 2
op 0 RESIZE_BILINEAR in=[0 1] out=[2] align_corners=true)",
          R"(tensor 0 "in" float32 1x1x3x1 const=[1 5 9]
tensor 1 "size" int32 2 const=[1 2]
tensor 2 "out" float32 1x1x2x1 const=[1 9]
inputs 0
outputs 2
op 0 RESIZE_NEAREST_NEIGHBOR in=[0 1] out=[2] align_corners=true)",
          R"(tensor 0 "a" float32 2x2x1 const=[1 2 3 4]
tensor 1 "b" float32 2x1x3 const=[1 2 3 10 20 30]
tensor 2 "out" float32 2x2x3 const=[1 2 3 2 4 6 30 60 90 40 80 120]
inputs 0 1
outputs 2
op 0 BATCH_MATMUL in=[0 1] out=[2])",
          R"(tensor 0 "a" float32 2x3 const=[1 2 3 4 5 6]
tensor 1 "b" float32 1x2 const=[1 10]
tensor 2 "out" float32 3x1 const=[41 52 63]
inputs 0 1
outputs 2
op 0 BATCH_MATMUL in=[0 1] out=[2] transpose_a=true transpose_b=true)",
          R"(tensor 0 "a" float32 5 const=[1.25 -1.25 0.75 -0.75 2]
tensor 1 "b" float32 5 const=[0.5 0.5 2 -2 0.5]
tensor 2 "out" float32 5 const=[0.25 0.25 0.75 -0.75 0]
inputs 0 1
outputs 2
op 0 FLOOR_MOD in=[0 1] out=[2])",
          R"(tensor 0 "in" float32 4 const=[-2 -0.5 0 3]
tensor 1 "alpha" float32 1 const=[0.25]
tensor 2 "out" float32 4 const=[-0.5 -0.125 0 3]
inputs 0 1
outputs 2
op 0 PRELU in=[0 1] out=[2])",
      })
    expect_values(text);
}

TEST(Definition, WhatHasNoneIsRefused) {
  struct Row {
    const char *text, *find, *refused, *reason;  // accepted as it is
  };
  const char* const kProduct = R"(tensor 0 "a" int8 2 scale=0.5 const=[1 2]
tensor 1 "b" int8 2 scale=0.25 const=[1 4]
tensor 2 "out" int8 2 scale=1 const=[0 1]
inputs 0 1
outputs 2
op 0 MUL in=[0 1] out=[2])";
  const char* const kDifference = R"(tensor 0 "a" int8 1 scale=0.5 const=[4]
tensor 1 "b" int8 1 scale=0.5 const=[8]
tensor 2 "out" int8 1 scale=1 const=[4]
inputs 0 1
outputs 2
op 0 SQUARED_DIFFERENCE in=[0 1] out=[2])";
  const char* const kEqual = R"(tensor 0 "a" int8 2 scale=0.5 const=[4 2]
tensor 1 "b" int8 2 scale=0.25 const=[8 2]
tensor 2 "out" boolean 2 const=[1 0]
inputs 0 1
outputs 2
op 0 EQUAL in=[0 1] out=[2])";
  const char* const kDense = R"(tensor 0 "in" uint8 1x1x1x1 scale=0.5 const=[4]
tensor 1 "w" uint8 2x1x1x1 scale=[0.5 0.5] const=[2 4]
tensor 2 "b" int32 2 scale=0.25 const=[4 8]
tensor 3 "out" uint8 1x1x1x2 scale=0.25 const=[12 24]
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3])";
  const char* const kRealDense = R"(tensor 0 "in" float32 1x1x1x1 const=[4]
tensor 1 "w" float32 2x1x1x1 const=[2 4]
tensor 2 "b" float32 2 const=[0.5 1]
tensor 3 "out" float32 1x1x1x2 const=[8.5 17]
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3])";
  const char* const kTiles = R"(tensor 0 "in" int32 2 const=[4 5]
tensor 1 "times" int32 1 const=[2]
tensor 2 "out" int32 4 const=[4 5 4 5]
inputs 0
outputs 2
op 0 TILE in=[0 1] out=[2])";
  const char* const kShares = R"(tensor 0 "in" int8 1x2 scale=1 const=[5 5]
tensor 1 "out" int8 1x2 scale=0.00390625 zero=-128 const=[0 0]
inputs 0
outputs 1
op 0 SOFTMAX in=[0] out=[1] beta=1)";
  const char* const kPowers = R"(tensor 0 "in" float32 2 const=[0 0]
tensor 1 "out" float32 2 const=[1 1]
inputs 0
outputs 1
op 0 EXP in=[0] out=[1])";
  const Row rows[] = {
      {kProduct, "\"a\" int8 2 scale=0.5", "\"a\" int8 2", "quantiz"},
      {kProduct, "\"b\" int8 2 scale=0.25", "\"b\" int8 2", "quantiz"},
      {kProduct, "\"out\" int8 2 scale=1", "\"out\" int8 2", "quantiz"},
      {kDifference, "\"b\" int8 1 scale=0.5", "\"b\" int8 1", "quantiz"},
      {kEqual, "scale=0.25", "scale=1", "scale 1"},
      {kDense, "[0.5 0.5]", "[0.5 0.25]", "scale"},
      {kDense, "inputs 0", "inputs 0 2", "bias"},
      {kRealDense, "\"b\" float32 2 const=[0.5 1]", "\"b\" float16 2 const=hex:00000000", "expected float32"},
      {kTiles, "inputs 0", "inputs 0 1", "constant"},
      {kShares, "int8 1x2 scale=1", "int8 1x2", "quantiz"},
      {kPowers, "float32 2 const=[0 0]\ntensor 1 \"out\" float32", "int32 2 const=[0 0]\ntensor 1 \"out\" int32",
       "int32 without quantization"}};
  for (const Row& row : rows) {
    expect_values(row.text);
    std::string text = row.text;
    text.replace(text.find(row.find), std::string_view(row.find).size(), row.refused);
    SCOPED_TRACE(text);
    auto graph = ir::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    for (const ir::TensorId id : graph->inputs) take_value(graph->tensor(id));
    for (const ir::TensorId id : graph->outputs) take_value(graph->tensor(id));
    const auto cpu = Interpreter::create(*graph);
    ASSERT_FALSE(cpu.ok());
    EXPECT_NE(cpu.error().message.find(row.reason), std::string::npos) << cpu.error().message;
  }
}

// Two boxes that overlap by half of each, and one apart; the first column of the scores is the background.
constexpr const char* kBoxes = R"(tensor 0 "boxes" float32 1x3x4 const=[0 0 0 0 5 0 0 0 0 0 0 0]
tensor 1 "scores" float32 1x3x3 const=[0.9 0.5 0.25 0.9 0.75 0.125 0.9 0.25 0.625]
tensor 2 "anchors" float32 3x4 const=[0 0 2 1 0 0 2 1 8 0 2 1]
tensor 3 "corners" float32 CORNERS
tensor 4 "classes" float32 CLASSES
tensor 5 "found" float32 FOUND
tensor 6 "count" float32 1 const=[COUNT]
inputs 0 1
outputs 3 4 5 6
op 0 TFLite_Detection_PostProcess in=[0 1 2] out=[3 4 5 6] num_classes=2 y_scale=10 x_scale=10 h_scale=5 w_scale=5 )";

// A score must be above the limit. Boxes are chosen by their score; boxes that overlap a chosen one by more than half
// are not.
TEST(Definition, OfSuppression) {
  for (const auto& [scores, limit, found, count] :
       {std::array{"0.5 0.75 0.25", "0.5", "1 0 0", "1"}, std::array{"0.5 0.75 0.25", "0.25", "1 0 0", "2"},
        std::array{"0.5 0.75 0.25", "0.125", "1 0 2", "3"}, std::array{"0.5 0.75 0.75", "0", "1 2 0", "3"},
        std::array{"0.25 0.25 0.25", "0.25", "0 0 0", "0"}})
    expect_values(fmt::format(R"(tensor 0 "boxes" float32 3x4 const=[0 0 1 1 2 2 3 3 2 2.5 3 3.5]
tensor 1 "scores" float32 3 const=[{}]
tensor 2 "most" int32 scalar const=[3]
tensor 3 "overlap" float32 scalar const=[0.5]
tensor 4 "limit" float32 scalar const=[{}]
tensor 5 "found" int32 3 const=[{}]
tensor 6 "count" int32 scalar const=[{}]
inputs 0 1 3 4
outputs 5 6
op 0 NON_MAX_SUPPRESSION_V4 in=[0 1 2 3 4] out=[5 6])",
                              scores, limit, found, count)
                      .c_str());
}

TEST(Definition, OfDetections) {
  struct Row {
    const char *corners, *classes, *found, *count, *attrs;
  };
  // Box 0 spans y -1..1, box 1 0..2, box 2 7..9; x -0.5..0.5. Boxes 0 and 1 overlap by 1/3.
  const Row rows[] = {
      {"1x3x4 const=[0 -0.5 2 0.5 7 -0.5 9 0.5 -1 -0.5 1 0.5]", "1x3 const=[0 1 0]", "1x3 const=[0.75 0.625 0.5]", "3",
       "max_detections=3 max_classes_per_detection=1 iou_threshold=0.4 score_threshold=0.25"},
      {"1x3x4 const=[0 -0.5 2 0.5 7 -0.5 9 0.5 0 0 0 0]", "1x3 const=[0 1 0]", "1x3 const=[0.75 0.625 0]", "2",
       "max_detections=3 max_classes_per_detection=1 iou_threshold=0.3 score_threshold=0.25"},
      {"1x2x4 const=[0 -0.5 2 0.5 7 -0.5 9 0.5]", "1x2 const=[0 1]", "1x2 const=[0.75 0.625]", "2",
       "max_detections=2 max_classes_per_detection=1 iou_threshold=0.4 score_threshold=0.25"},
      {"1x2x4 const=[0 -0.5 2 0.5 7 -0.5 9 0.5]", "1x2 const=[0 1]", "1x2 const=[0.75 0.625]", "2",
       "max_detections=2 max_classes_per_detection=1 iou_threshold=0.4 score_threshold=0.625"},
      {"1x4x4 const=[0 -0.5 2 0.5 0 -0.5 2 0.5 7 -0.5 9 0.5 7 -0.5 9 0.5]", "1x4 const=[0 1 1 0]",
       "1x4 const=[0.75 0.125 0.625 0.25]", "2",
       "max_detections=2 max_classes_per_detection=2 iou_threshold=0.4 score_threshold=0.25"},
      {"1x3x4 const=[0 -0.5 2 0.5 7 -0.5 9 0.5 7 -0.5 9 0.5]", "1x3 const=[0 1 0]", "1x3 const=[0.75 0.625 0.25]", "3",
       "max_detections=3 max_classes_per_detection=1 iou_threshold=0.3 score_threshold=0.25 regular_nms=true "
       "detections_per_class=2"},
      {"1x3x4 const=[0 -0.5 2 0.5 7 -0.5 9 0.5 0 0 0 0]", "1x3 const=[0 1 0]", "1x3 const=[0.75 0.625 0]", "2",
       "max_detections=3 max_classes_per_detection=1 iou_threshold=0.3 score_threshold=0.25 regular_nms=true "
       "detections_per_class=1"}};
  // A box that contains half of another: exactly the limit.
  expect_values(R"(tensor 0 "boxes" float32 1x2x4 const=[0 10 0 0 0 10 0 0]
tensor 1 "scores" float32 1x2x1 const=[0.75 0.5]
tensor 2 "anchors" float32 2x4 const=[0 0 2 1 0.5 0 1 1]
tensor 3 "corners" float32 1x2x4 const=[-1 0.5 1 1.5 0 0.5 1 1.5]
tensor 4 "classes" float32 1x2 const=[0 0]
tensor 5 "found" float32 1x2 const=[0.75 0.5]
tensor 6 "count" float32 1 const=[2]
inputs 0 1
outputs 3 4 5 6
op 0 TFLite_Detection_PostProcess in=[0 1 2] out=[3 4 5 6] num_classes=1 y_scale=10 x_scale=10 h_scale=5 w_scale=5 )"
                "max_detections=2 max_classes_per_detection=1 iou_threshold=0.5 score_threshold=0.25");
  for (const Row& row : rows) {
    std::string text = kBoxes;
    for (const auto& [name, value] :
         {std::pair{"CORNERS", row.corners}, {"CLASSES", row.classes}, {"FOUND", row.found}, {"COUNT", row.count}})
      text.replace(text.find(name), std::string_view(name).size(), value);
    expect_values((text + row.attrs).c_str());
  }
}

}  // namespace
}  // namespace skillet::ref
