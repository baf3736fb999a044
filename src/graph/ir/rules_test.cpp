// Every limit of the rules of operations, from both sides: the first refused value and the last accepted one.
#include <gtest/gtest.h>

#include "graph/ir/testing/rule_rows.h"

namespace skillet::ir {
namespace {

TEST(Rules, Picking) {
  const char* const kGather = R"(tensor 0 "in" float32 2x3x4
tensor 1 "at" int32 2x5
tensor 2 "out" float32 7
inputs 0 1
op 0 GATHER in=[0 1] out=[2] axis=1 batch_dims=1
)";
  const char* const kGatherNd = R"(tensor 0 "in" float32 2x3x4
tensor 1 "at" int32 6x2
tensor 2 "out" float32 7
inputs 0 1
op 0 GATHER_ND in=[0 1] out=[2]
)";
  const char* const kTop = R"(tensor 0 "in" float32 2x7
tensor 1 "k" int32 scalar const=[3]
tensor 2 "values" float32 7
tensor 3 "indices" int32 7
inputs 0
op 0 TOPK_V2 in=[0 1] out=[2 3]
)";
  const char* const kOneHot = R"(tensor 0 "at" int32 3
tensor 1 "depth" int32 scalar const=[4]
tensor 2 "on" float32 scalar const=zeros
tensor 3 "off" float32 scalar const=zeros
tensor 4 "out" float32 7
inputs 0
op 0 ONE_HOT in=[0 1 2 3] out=[4] axis=-1
)";
  check({{kGather, "axis=1", "axis=3", "axis=2", "axis 3 is outside"},
         {kGather, "axis=1", "axis=-4", "axis=-2", "axis -4 is outside"},
         {kGather, "axis=1", "axis=0", "axis=1", "1 batch dimensions"},
         {kGather, "batch_dims=1", "batch_dims=2", "batch_dims=0", "2 batch dimensions"},
         {kGather, "batch_dims=1", "batch_dims=-3", "batch_dims=-1", "-3 batch dimensions"},
         {kGather, "int32 2x5", "int32 3x5", "int32 2x1", "does not fit the first"},
         {kGather, "int32 2x5", "uint8 2x5", "int16 2x5", "holds no indices"},
         {kGather, "int32 2x5", "float32 2x5", "int64 2x5", "holds no indices"},
         {kGatherNd, "6x2", "6x4", "6x3", "index tuples of 4 for 3"},
         {kGatherNd, "6x2", "scalar", "1", "index tuples"},
         {kGatherNd, "int32", "uint8", "int16", "holds no indices"},
         {kTop, "[3]", "[8]", "[7]", "the best 8 of 7"},
         {kTop, "[3]", "[-1]", "[0]", "the best -1 of 7"},
         {kTop, "values\" float32", "values\" int32", "values\" float32", "change their type"},
         {kTop, "indices\" int32", "indices\" int64", "indices\" int16", "holds no indices"},
         {kTop, "2x7", "scalar", "7", "scalar"},
         {kOneHot, "axis=-1", "axis=2", "axis=1", "axis 2 is outside"},
         {kOneHot, "axis=-1", "axis=-3", "axis=-2", "axis -3 is outside"},
         {kOneHot, "at\" int32", "at\" float32", "at\" int64", "holds no indices"},
         {kOneHot, "on\" float32 scalar", "on\" float32 2", "on\" float32 1x1", "not a single value"},
         {kOneHot, "off\" float32 scalar", "off\" float32 2", "off\" float32 1", "not a single value"},
         {kOneHot, "on\" float32", "on\" int32", "on\" float32", "of another type"},
         {kOneHot, "off\" float32", "off\" int32", "off\" float32", "of another type"},
         {kOneHot, "out\" float32", "out\" int32", "out\" float32", "of another type"},
         {kOneHot, "[4]", "[-1]", "[0]", "comes out as -1"}});
}

TEST(Rules, Repeating) {
  const char* const kTile = R"(tensor 0 "in" float32 2x3
tensor 1 "repeats" int64 2 const=[4 5]
tensor 2 "out" float32 7
inputs 0
op 0 TILE in=[0 1] out=[2]
)";
  const char* const kBroadcast = R"(tensor 0 "in" float32 1x3
tensor 1 "to" int32 2 const=[2 3]
tensor 2 "out" float32 7
inputs 0
op 0 BROADCAST_TO in=[0 1] out=[2]
)";
  const char* const kFill = R"(tensor 0 "dims" int32 2 const=[2 3]
tensor 1 "value" float32 scalar
tensor 2 "out" float32 7
inputs 1
op 0 FILL in=[0 1] out=[2]
)";
  const char* const kMirror = R"(tensor 0 "in" float32 2x3
tensor 1 "margins" int32 2x2 const=[1 0 2 2]
tensor 2 "out" float32 7
inputs 0
op 0 MIRROR_PAD in=[0 1] out=[2] symmetric=false
)";
  const char* const kShape = R"(tensor 0 "in" float32 2x3
tensor 1 "out" int32 7
inputs 0
op 0 SHAPE in=[0] out=[1]
)";
  const char* const kSum = R"(tensor 0 "in" float32 2x3
tensor 1 "axis" int32 scalar const=[0]
tensor 2 "out" float32 7
inputs 0
op 0 CUMSUM in=[0 1] out=[2]
)";
  const char* const kReverse = R"(tensor 0 "in" float32 2x3
tensor 1 "axes" int32 2 const=[0 1]
tensor 2 "out" float32 7
inputs 0
op 0 REVERSE_V2 in=[0 1] out=[2]
)";
  check({{kTile, "2 const=[4 5]", "3 const=[4 5 6]", "2 const=[1 1]", "does not fit the first"},
         {kTile, "[4 5]", "[4 -1]", "[4 0]", "comes out as -"},
         {kTile, "[4 5]", "[9223372036854775807 5]", "[100000 5]", "9223372036854775807 repeats of 2"},
         {kTile, "[4 5]", "[1 715827883]", "[1 1000000]", "comes out as 2147483649"},
         {kBroadcast, "[2 3]", "[2 4]", "[7 3]", "do not broadcast"},
         {kBroadcast, "2 const=[2 3]", "1 const=[3]", "3 const=[4 1 3]", "does not broadcast to 3"},
         {kBroadcast, "[2 3]", "[-1 3]", "[1 3]", "comes out as -1"},
         {kFill, "out\" float32", "out\" int32", "out\" float32", "changes its type"},
         {kFill, "float32 scalar", "float32 2", "float32 1", "more than one value"},
         {kFill, "[2 3]", "[2 -1]", "[2 0]", "comes out as -1"},
         {kMirror, "[1 0 2 2]", "[2 0 0 0]", "[0 1 0 0]", "a margin of 2 mirrors only 1"},
         {kMirror, "[1 0 2 2]", "[0 0 0 3]", "[0 0 0 2]", "a margin of 3 mirrors only 2"},
         {kMirror, "[1 0 2 2]", "[0 -1 0 0]", "[0 0 0 0]", "2 rows of 2 values"},
         {kShape, "int32 7", "float32 7", "int64 7", "holds no dimensions"},
         {kShape, "int32 7", "int16 7", "int32 7", "holds no dimensions"},
         {kSum, "[0]", "[2]", "[1]", "axis 2 is outside"},
         {kSum, "[0]", "[-3]", "[-2]", "axis -3 is outside"},
         {kSum, "scalar const=[0]", "2 const=[0 1]", "1 const=[0]", "must have 1 element"},
         {kReverse, "[0 1]", "[0 2]", "[-1 0]", "axis 2 is outside"},
         {kReverse, "[0 1]", "[-3 1]", "[-2 1]", "axis -3 is outside"}});
  std::string symmetric = kMirror;
  symmetric.replace(symmetric.find("false"), 5, "true");
  check({{symmetric.c_str(), "[1 0 2 2]", "[3 0 0 0]", "[2 2 3 3]", "a margin of 3 mirrors only 2"}});
}

TEST(Rules, Arithmetic) {
  const char* const kLess = R"(tensor 0 "a" int32 2x3
tensor 1 "b" int32 3
tensor 2 "out" boolean 7
inputs 0 1
op 0 LESS in=[0 1] out=[2]
)";
  const char* const kSelect = R"(tensor 0 "if" boolean 2
tensor 1 "a" int32 2x3
tensor 2 "b" int32 2x3
tensor 3 "out" int32 7
inputs 0 1 2
op 0 SELECT in=[0 1 2] out=[3]
)";
  const char* const kSelect2 = R"(tensor 0 "if" boolean 3
tensor 1 "a" int32 2x1
tensor 2 "b" int32 2x3
tensor 3 "out" int32 7
inputs 0 1 2
op 0 SELECT_V2 in=[0 1 2] out=[3]
)";
  const char* const kProduct = R"(tensor 0 "a" float32 5x2x3
tensor 1 "b" float32 3x4
tensor 2 "out" float32 7
inputs 0 1
op 0 BATCH_MATMUL in=[0 1] out=[2] transpose_a=false transpose_b=false
)";
  const char* const kResize = R"(tensor 0 "in" float32 1x2x3x4
tensor 1 "size" int32 2 const=[5 6]
tensor 2 "out" float32 7
inputs 0
op 0 RESIZE_BILINEAR in=[0 1] out=[2] align_corners=true half_pixel_centers=false
)";
  const char* const kSum = R"(tensor 0 "a" float32 2x3
tensor 1 "b" float32 2x3
tensor 2 "out" float32 7
inputs 0 1
op 0 ADD_N in=[0 1 0] out=[2]
)";
  const char* const kBest = R"(tensor 0 "in" float32 2x3
tensor 1 "axis" int32 scalar const=[1]
tensor 2 "out" int32 7
inputs 0
op 0 ARG_MIN in=[0 1] out=[2]
)";
  const char* const kMax = R"(tensor 0 "in" float32 2x3
tensor 1 "axes" int32 2 const=[0 1]
tensor 2 "out" float32 7
inputs 0
op 0 REDUCE_MAX in=[0 1] out=[2]
)";
  const char* const kLeaky = R"(tensor 0 "in" float32 2x3
tensor 1 "out" float32 7
inputs 0
op 0 LEAKY_RELU in=[0] out=[1] alpha=0.5
)";
  const char* const kSoftmax = R"(tensor 0 "in" float32 2x3
tensor 1 "out" float32 7
inputs 0
op 0 SOFTMAX in=[0] out=[1] beta=0.5
)";
  const char* const kNorm = R"(tensor 0 "in" float32 2x3
tensor 1 "out" float32 7
inputs 0
op 0 LOG_SOFTMAX in=[0] out=[1]
)";
  check({{kLess, "b\" int32", "b\" int64", "b\" int32", "types int32 and int64"},
         {kLess, "out\" boolean", "out\" int32", "out\" boolean", "types int32 and int32 to int32"},
         {kLess, "b\" int32 3", "b\" int32 2", "b\" int32 1", "do not broadcast"},
         {kSelect, "if\" boolean", "if\" uint8", "if\" boolean", "uint8 ? int32 : int32"},
         {kSelect, "b\" int32", "b\" int64", "b\" int32", "boolean ? int32 : int64"},
         {kSelect, "out\" int32", "out\" int64", "out\" int32", "to int64"},
         {kSelect, "boolean 2", "boolean 3", "boolean 2x3", "do not fit"},
         {kSelect, "boolean 2", "boolean 1", "boolean scalar", "do not fit"},
         {kSelect, "b\" int32 2x3", "b\" int32 1x3", "b\" int32 2x3", "do not fit"},
         {kSelect2, "boolean 3", "boolean 2", "boolean 4x1x3", "do not broadcast"},
         {kSelect2, "b\" int32 2x3", "b\" int32 3x3", "b\" int32 1x3", "do not broadcast"},
         {kProduct, "3x4", "2x4", "5x3x4", "3 columns times 2 rows"},
         {kProduct, "3x4", "4x3x4", "1x3x4", "do not broadcast"},
         {kProduct, "3x4", "3", "3x1", "fewer than 2 dimensions"},
         {kProduct, "3x4\n", "4x3\n", "3x3\n", "3 columns times 4 rows"},
         {kProduct, "transpose_a=false", "transpose_a=true", "transpose_a=false", "2 columns times 3 rows"},
         {kProduct, "transpose_b=false", "transpose_b=true", "transpose_b=false", "3 columns times 4 rows"},
         {kResize, "half_pixel_centers=false", "half_pixel_centers=true", "half_pixel_centers=false", "exclude"},
         {kResize, "2 const=[5 6]", "3 const=[5 6 7]", "2 const=[1 1]", "3 elements, not 2"},
         {kResize, "1x2x3x4", "2x3x4", "2x2x3x4", "dimensions"},
         {kSum, "b\" float32 2x3", "b\" float32 1x3", "b\" float32 2x3", "differs from the first"},
         {kBest, "[1]", "[2]", "[0]", "axis 2 is outside"},
         {kBest, "[1]", "[-3]", "[-2]", "axis -3 is outside"},
         {kBest, "out\" int32", "out\" int16", "out\" int64", "must be int32 or int64"},
         {kMax, "[0 1]", "[0 2]", "[-2 -1]", "axis 2 is outside"},
         {kMax, "[0 1]", "[0 -3]", "[1 1]", "axis -3 is outside"},
         {kLeaky, "0.5", "bits:7f800000", "-3", "alpha is not finite"},
         {kSoftmax, "0.5", "bits:7fc00000", "-3", "beta is not finite"},
         {kSoftmax, "2x3", "scalar", "3", "scalar"},
         {kNorm, "2x3", "scalar", "3", "scalar"}});
}

TEST(Rules, Windows) {
  const char* const kConv = R"(tensor 0 "in" int8 1x40000x4x6 scale=1
tensor 1 "w" int8 4x1x1x3 scale=1 const=zeros
tensor 2 "b" int32 4 scale=1 const=zeros
tensor 3 "out" int8 7 scale=1
inputs 0
op 0 CONV_2D in=[0 1 2] out=[3] stride_h=1 stride_w=1 dilation_h=1 dilation_w=1
)";
  const char* const kDepthwise = R"(tensor 0 "in" float32 1x8x8x2
tensor 1 "w" float32 1x3x3x4 const=zeros
tensor 2 "b" float32 4 const=zeros
tensor 3 "out" float32 7
inputs 0
op 0 DEPTHWISE_CONV_2D in=[0 1 2] out=[3]
)";
  const char* const kUp = R"(tensor 0 "size" int32 4 const=[1 16 16 3]
tensor 1 "w" int8 3x2x2x4 scale=1 const=zeros
tensor 2 "in" int8 1x8x8x4 scale=1
tensor 3 "b" int32 3 scale=1 const=zeros
tensor 4 "out" int8 7 scale=1
inputs 2
op 0 TRANSPOSE_CONV in=[0 1 2 3] out=[4] stride_h=2 stride_w=2
)";
  const char* const kDense = R"(tensor 0 "in" float32 2x6
tensor 1 "w" float32 5x3 const=zeros
tensor 2 "b" float32 5 const=zeros
tensor 3 "out" float32 7
inputs 0
op 0 FULLY_CONNECTED in=[0 1 2] out=[3] keep_num_dims=false
)";
  const char* const kPool = R"(tensor 0 "in" float32 1x40000x4x6
tensor 1 "out" float32 7
inputs 0
op 0 MAX_POOL_2D in=[0] out=[1] stride_h=1 stride_w=1 filter_h=1 filter_w=1
)";
  check({{kConv, "stride_h=1", "stride_h=32769", "stride_h=32768", "stride 32769x1 is outside 1..32768"},
         {kConv, "stride_w=1", "stride_w=32769", "stride_w=32768", "stride 1x32769"},
         {kConv, "stride_w=1", "stride_w=0", "stride_w=2", "stride 1x0"},
         {kConv, "dilation_h=1", "dilation_h=32769", "dilation_h=32768", "dilation 32769x1"},
         {kConv, "dilation_w=1", "dilation_w=0", "dilation_w=32768", "dilation 1x0"},
         {kConv, "4x1x1x3", "4x1x1x4", "4x1x1x6", "does not fit 6 input channels"},
         {kConv, "int32 4", "int32 3", "int64 4", "4 output channels"},
         {kConv, "b\" int32 4 scale=1", "b\" int8 4 scale=1", "b\" int64 4 scale=1", "does not fit int8"},
         {kConv, "w\" int8", "w\" int32", "w\" uint8", "has a type this op does not take"},
         {kConv, "1x40000x4x6", "40000x4x6", "1x1x1x6", "dimensions"},
         {kConv, "4x1x1x3", "4x1x3", "4x1x1x3", "dimensions"},
         {kDepthwise, "1x3x3x4", "2x3x3x4", "1x1x1x4", "does not fit 2 input channels"},
         {kDepthwise, "b\" float32 4", "b\" float32 2", "b\" float32 1x4", "4 output channels"},
         {kDepthwise, "b\" float32", "b\" int32", "b\" float32", "does not fit float32"},
         {kUp, "[1 16 16 3]", "[2 16 16 3]", "[1 15 15 3]", "does not agree with batch 1"},
         {kUp, "[1 16 16 3]", "[1 16 16 4]", "[1 17 16 3]", "and 3 output channels"},
         {kUp, "4 const=[1 16 16 3]", "3 const=[16 16 3]", "4 const=[1 16 16 3]", "does not agree"},
         {kUp, "3x2x2x4", "3x2x2x2", "3x3x3x4", "does not fit 4 input channels"},
         {kUp, "b\" int32 3", "b\" int32 4", "b\" int32 3", "3 output channels"},
         {kDense, "2x6", "2x5", "2x3x3", "whole number of rows of 3"},
         {kDense, "keep_num_dims=false", "keep_num_dims=true", "keep_num_dims=false", "whole number of rows of 3"},
         {kDense, "5x3", "5x3x1", "5x6", "dimensions"},
         {kPool, "filter_h=1", "filter_h=32769", "filter_h=32768", "filter 32769x1"},
         {kPool, "filter_w=1", "filter_w=0", "filter_w=32768", "filter 1x0"},
         {kPool, "stride_w=1", "stride_w=32769", "stride_w=32768", "stride 1x32769"}});
}

TEST(Rules, Cutting) {
  const char* const kToBatch = R"(tensor 0 "in" float32 1x3x6x1
tensor 1 "blocks" int32 2 const=[2 2]
tensor 2 "margins" int32 2x2 const=[0 1 0 0]
tensor 3 "out" float32 7
inputs 0
op 0 SPACE_TO_BATCH_ND in=[0 1 2] out=[3]
)";
  const char* const kSlice = R"(tensor 0 "in" float32 5x6
tensor 1 "begin" int64 2 const=[0 0]
tensor 2 "end" int64 2 const=[5 6]
tensor 3 "strides" int64 2 const=[1 1]
tensor 4 "out" float32 7
inputs 0
op 0 STRIDED_SLICE in=[0 1 2 3] out=[4] shrink_axis_mask=1 ellipsis_mask=0
)";
  check({{kToBatch, "[0 1 0 0]", "[0 0 0 0]", "[1 0 0 0]", "do not divide the padded size 3"},
         {kToBatch, "[0 1 0 0]", "[0 1 0 1]", "[0 1 1 1]", "do not divide the padded size 7"},
         {kToBatch, "2 const=[2 2]", "1 const=[2]", "2 const=[4 1]", "1 block sizes for 2"},
         {kToBatch, "[2 2]", "[0 2]", "[1 2]", "block size 0 is out of range"},
         {kToBatch, "1x3x6x1", "1x3", "2x3x6x4", "2 dimensions, not 3 or 4"},
         {kSlice, "const=[0 0]", "const=[5 0]", "const=[4 0]", "index 5 is outside the dimension of 5"},
         {kSlice, "const=[0 0]", "const=[-6 0]", "const=[-5 0]", "index -6 is outside the dimension of 5"},
         {kSlice, "const=[0 0]", "const=[0 2147483648]", "const=[0 -2147483648]", "index 2147483648 is too large"},
         {kSlice, "const=[5 6]", "const=[5 -2147483649]", "const=[5 2147483647]", "index -2147483649 is too large"},
         {kSlice, "const=[1 1]", "const=[1 0]", "const=[1 7]", "stride 0 in dimension 1"},
         {kSlice, "ellipsis_mask=0", "ellipsis_mask=3", "ellipsis_mask=2", "more than one ellipsis"}});
}

TEST(Rules, Recurrent) {
  const char* const kLstm = R"(tensor 0 "in" float32 2x3
tensor 1 "i" float32 4x3 const=zeros
tensor 2 "f" float32 4x3 const=zeros
tensor 3 "c" float32 4x3 const=zeros
tensor 4 "o" float32 4x3 const=zeros
tensor 5 "ri" float32 4x4 const=zeros
tensor 6 "rf" float32 4x4 const=zeros
tensor 7 "rc" float32 4x4 const=zeros
tensor 8 "ro" float32 4x4 const=zeros
tensor 9 "pi" float32 4 const=zeros
tensor 10 "pf" float32 4 const=zeros
tensor 11 "po" float32 4 const=zeros
tensor 12 "bi" float32 4 const=zeros
tensor 13 "bf" float32 4 const=zeros
tensor 14 "bc" float32 4 const=zeros
tensor 15 "bo" float32 4 const=zeros
tensor 16 "p" float32 4x4 const=zeros
tensor 17 "pb" float32 4 const=zeros
tensor 18 "state" float32 2x4 variable
tensor 19 "cells" float32 2x4 variable
tensor 20 "out" float32 7
inputs 0
op 0 LSTM in=[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] out=[20] cell_clip=1 projection_clip=1
)";
  check({{kLstm, "[0 1 ", "[0 - ", "[0 1 ", "half of an input gate"},
         {kLstm, "[0 1 2 3 4 5 6", "[0 - 2 3 4 - 6", "[0 1 2 3 4 5 6", "a peephole of a missing input gate"},
         {kLstm, "[0 1 2 3 4 5 6 7 8 9 10", "[0 1 2 3 4 5 6 7 8 - 10", "[0 - 2 3 4 - 6 7 8 - 10",
          "peepholes are missing"},
         {kLstm, "9 10 11 12", "9 - 11 12", "- - - 12", "peepholes are missing"},
         {kLstm, "4 5 6 7 8", "- 5 6 7 8", "4 5 6 7 8", "input 4 is missing"},
         {kLstm, "12 13", "- 13", "12 13", "input 12 is missing"},
         {kLstm, "18 19", "- 19", "18 19", "input 18 is missing"},
         {kLstm, "18 19", "18 18", "18 19", "not a separate variable"},
         {kLstm, "2x4 variable", "2x4 const=zeros", "8 variable", "not a separate variable"},
         {kLstm, "2x4 variable", "2x5 variable", "1x8 variable", "should have shape 2x4"},
         {kLstm, "inputs 0", "inputs 0 18", "inputs 0", "not a separate variable"},
         {kLstm, "c\" float32 4x3", "c\" float32 4x4", "c\" float32 4x3", "should have shape 4x3"},
         {kLstm, "rf\" float32 4x4", "rf\" float32 4x3", "rf\" float32 4x4", "should have shape 4x4"},
         {kLstm, "bc\" float32 4", "bc\" float32 3", "bc\" float32 4", "should have shape 4"},
         {kLstm, "po\" float32 4", "po\" float32 3", "po\" float32 4", "should have shape 4"},
         {kLstm, "p\" float32 4x4", "p\" float32 4x3", "p\" float32 4x4", "should have shape 4x4"},
         {kLstm, "pb\" float32 4", "pb\" float32 3", "pb\" float32 4", "should have shape 4"},
         {kLstm, "2x3", "1x2x3", "2x3", "dimensions"},
         {kLstm, "cell_clip=1", "cell_clip=-1", "cell_clip=0", "-1 is not a clip"},
         {kLstm, "projection_clip=1", "projection_clip=bits:7f800000", "projection_clip=0", "inf is not a clip"}});
}

TEST(Rules, FiltersOverTime) {
  const char* const kSvdf = R"(tensor 0 "in" int8 2x5
tensor 1 "features" int8 6x5 const=zeros
tensor 2 "time" int16 6x4 const=zeros
tensor 3 "bias" int32 3 const=zeros
tensor 4 "state" int16 2x24 variable
tensor 5 "out" int8 7
inputs 0
op 0 SVDF in=[0 1 2 3 4] out=[5] rank=2 activation=relu
)";
  check({{kSvdf, "rank=2", "rank=0", "rank=2", "6 filters of rank 0"},
         {kSvdf, "rank=2", "rank=4", "rank=2", "6 filters of rank 4"},
         {kSvdf, "[0 1", "[0 -", "[0 1", "input 1 is missing"},
         {kSvdf, "3 4]", "3 -]", "- 4]", "input 4 is missing"},
         {kSvdf, "6x5", "6x4", "6x5", "should have shape 6x5"},
         {kSvdf, "6x4", "5x4", "6x4", "should have shape 6x4"},
         {kSvdf, "int32 3", "int32 6", "int32 3", "should have shape 3"},
         {kSvdf, "2x24 variable", "2x24 const=zeros", "48 variable", "not a separate variable"},
         {kSvdf, "2x24 variable", "2x12 variable", "1x48 variable", "should have shape 2x24"},
         {kSvdf, "in\" int8 2x5", "in\" int8 1x2x5", "in\" int8 2x5", "dimensions"}});
}

TEST(Rules, Variables) {
  const char* const kVariable = R"(tensor 0 "in" int8 2x3
tensor 1 "kept" int8 2x3 variable const=[1 2 3 4 5 6]
tensor 2 "out" int8 2x3
inputs 0
op 0 ASSIGN_VARIABLE in=[0] out=[1]
op 1 READ_VARIABLE in=[1] out=[2]
op 2 ASSIGN_VARIABLE in=[2] out=[1]
)";
  const char* const kRead = R"(tensor 0 "in" int8 2x3
tensor 1 "kept" int8 2x3 variable
tensor 2 "out" int8 2x3
inputs 0
op 0 READ_VARIABLE in=[1] out=[2]
)";
  check({{kRead, "in=[1]", "in=[0]", "in=[1]", "is not a variable"},
         {kVariable, "[2] out=[1]", "[0] out=[2]", "[0] out=[1]", "already has a value"},
         {kVariable, "kept\" int8 2x3 variable const=[1 2 3 4 5 6]", "kept\" uint8 2x3 variable",
          "kept\" int8 2x3 variable", "its type differs"}});
}

TEST(Rules, Detections) {
  const char* const kBoxes = R"(tensor 0 "boxes" float32 1x10x4
tensor 1 "scores" float32 1x10x3
tensor 2 "anchors" float32 10x4 const=zeros
tensor 3 "a" float32 7
tensor 4 "b" float32 7
tensor 5 "c" float32 7
tensor 6 "d" float32 7
inputs 0 1
op 0 TFLite_Detection_PostProcess in=[0 1 2] out=[3 4 5 6] max_detections=5 max_classes_per_detection=1 detections_per_class=1 num_classes=3 regular_nms=true score_threshold=0.5 iou_threshold=0.5 y_scale=1 x_scale=1 h_scale=1 w_scale=1
)";
  check(
      {{kBoxes, "max_detections=5", "max_detections=0", "max_detections=1", "count 0"},
       {kBoxes, "max_detections=5", "max_detections=65537", "max_detections=65536", "count 65537"},
       {kBoxes, "max_classes_per_detection=1", "max_classes_per_detection=0", "max_classes_per_detection=2", "count 0"},
       {kBoxes, "num_classes=3", "num_classes=1", "num_classes=2", "do not fit 1 classes"},
       {kBoxes, "num_classes=3", "num_classes=4", "num_classes=3", "do not fit 4 classes"},
       {kBoxes, "detections_per_class=1", "detections_per_class=0", "detections_per_class=9", "0 detections per class"},
       {kBoxes, "score_threshold=0.5", "score_threshold=bits:7f800000", "score_threshold=-1", "inf is not finite"},
       {kBoxes, "iou_threshold=0.5", "iou_threshold=bits:7fc00000", "iou_threshold=0", "is not finite"},
       {kBoxes, "y_scale=1", "y_scale=0", "y_scale=0.1", "scale 0 is not positive"},
       {kBoxes, "w_scale=1", "w_scale=-1", "w_scale=9", "scale -1 is not positive"},
       {kBoxes, "1x10x4", "1x10x3", "1x10x5", "do not fit"},
       {kBoxes, "1x10x4", "2x10x4", "1x10x4", "do not fit"},
       {kBoxes, "1x10x3", "1x9x3", "1x10x4", "do not fit"},
       {kBoxes, "1x10x3", "2x10x3", "1x10x3", "do not fit"},
       {kBoxes, "anchors\" float32 10x4", "anchors\" float32 9x4", "anchors\" float32 10x4", "do not fit"},
       {kBoxes, "anchors\" float32 10x4", "anchors\" float32 10x5", "anchors\" float32 10x4", "do not fit"},
       {kBoxes, "d\" float32", "d\" int32", "d\" float32", "output 3 is not float32"}});
  RuleRow coarse{kBoxes, "regular_nms=true", "", "regular_nms=false", ""};
  std::string text = kBoxes;
  text.replace(text.find("detections_per_class=1"), 22, "detections_per_class=0");
  coarse.graph = text.c_str();
  EXPECT_TRUE(inferred(coarse, coarse.taken).ok()) << "what nobody asks may be anything";
}

}  // namespace
}  // namespace skillet::ir
