// int16 activations, computed weights, TRANSPOSE_CONV in float: small cases with explicit results.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/ref/int16_table.h"
#include "graph/ref/testing/definition.h"

namespace skillet::ref {
namespace {

TEST(Int16Definition, SumsAreRoundedAsTheirBiasSays) {
  for (const char* text : {
           // 182 / 4 and -442 / 4: halves round up if the bias has 64 bits, else away from zero.
           R"(tensor 0 "in" int16 1x2 scale=0.5 const=[100 -30]
tensor 1 "w" int8 2x2 scale=0.5 const=[2 1 -3 4]
tensor 2 "b" int64 2 scale=0.25 const=[12 -22]
tensor 3 "out" int16 1x2 scale=1 const=[46 -110]
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 2] out=[3])",
           R"(tensor 0 "in" int16 1x2 scale=0.5 const=[100 -30]
tensor 1 "w" int8 2x2 scale=0.5 const=[2 1 -3 4]
tensor 2 "b" int32 2 scale=0.25 const=[12 -22]
tensor 3 "out" int16 1x2 scale=1 const=[46 -111]
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 2] out=[3])",
           // 20004 * 0.6 = 12002.4: a multiplier of 16 bits would give 12003.
           R"(tensor 0 "in" int16 1x1 scale=0.3 const=[10002]
tensor 1 "w" int8 1x1 scale=0.5 const=[2]
tensor 2 "b" int64 1 scale=0.15 const=[0]
tensor 3 "out" int16 1x1 scale=0.25 const=[12002]
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 2] out=[3])",
           // A sum beyond 32 bits.
           R"(tensor 0 "in" int16 1x2 scale=1 const=[32767 32767]
tensor 1 "w" int8 1x2 scale=1 const=[127 127]
tensor 2 "b" int64 1 scale=1 const=[4294967296]
tensor 3 "out" int16 1x1 scale=262144 const=[16416]
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 2] out=[3])",
       })
    expect_values(text);
}

TEST(Int16Definition, OfArithmetic) {
  for (const char* text : {
           R"(tensor 0 "in" int16 1x2 scale=0.5 const=[100 -100]
tensor 1 "alpha" int16 2 scale=0.25 const=[2 2]
tensor 2 "out" int16 1x2 scale=1 const=[50 -25]
inputs 0
outputs 2
op 0 PRELU in=[0 1] out=[2])",
           // 10 / 4 is rounded before 4 is subtracted.
           R"(tensor 0 "a" int16 1 scale=0.25 const=[10]
tensor 1 "b" int16 1 scale=1 const=[-4]
tensor 2 "out" int16 1 scale=1 const=[-1]
inputs 0 1
outputs 2
op 0 ADD in=[0 1] out=[2])",
           R"(tensor 0 "a" int16 1 scale=0.25 const=[10]
tensor 1 "b" int16 1 scale=1 const=[-4]
tensor 2 "out" int16 1 scale=1 const=[-2]
inputs 0 1
outputs 2
op 0 ADD in=[0 1] out=[2] pot_scale_int16=false)",
           R"(tensor 0 "a" int16 2 scale=0.5 const=[30000 -30000]
tensor 1 "b" int16 1 scale=0.5 const=[3]
tensor 2 "out" int16 2 scale=0.25 const=[32767 -32768]
inputs 0 1
outputs 2
op 0 MUL in=[0 1] out=[2])",
           R"(tensor 0 "in" int16 1x2x1x1 scale=1 const=[-7 -4]
tensor 1 "out" int16 1x1x1x1 scale=1 const=[-6]
inputs 0
outputs 1
op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid stride_h=1 stride_w=1 filter_h=2 filter_w=1)",
           R"(tensor 0 "in" int16 1 scale=0.00048828125 const=[0]
tensor 1 "out" int16 1 scale=0.000030517578125 const=[16384]
inputs 0
outputs 1
op 0 LOGISTIC in=[0] out=[1])",
           R"(tensor 0 "in" int32 3 const=[1 2 -7]
tensor 1 "axis" int32 1 const=[0]
tensor 2 "out" int32 scalar const=[-1]
inputs 0
outputs 2
op 0 MEAN in=[0 1] out=[2])",
           R"(tensor 0 "a" int32 3 const=[7 -7 5]
tensor 1 "b" int32 3 const=[-2 2 0]
tensor 2 "out" int32 3 const=[-3 -3 0]
inputs 0 1
outputs 2
op 0 DIV in=[0 1] out=[2])",
       })
    expect_values(text);
}

TEST(Int16Definition, OfWeightsThatAnOperationMakes) {
  for (const char* text : {
           R"(tensor 0 "in" float32 1x1x1x1 const=[4]
tensor 1 "packed" int8 2x1x1x1 scale=0.5 const=[4 8]
tensor 2 "w" float32 2x1x1x1
tensor 3 "b" float32 2 const=[0.5 1]
tensor 4 "out" float32 1x1x1x2 const=[8.5 17]
inputs 0
outputs 4
op 0 DEQUANTIZE in=[1] out=[2]
op 1 CONV_2D in=[0 2 3] out=[4])",
           R"(tensor 0 "in" float32 1x1x1x1 const=[2]
tensor 1 "shape" int32 4 const=[1 2 2 1]
tensor 2 "w" float32 1x2x2x1 const=[1 2 3 4]
tensor 3 "b" float32 1 const=[0.5]
tensor 4 "out" float32 1x2x2x1 const=[2.5 4.5 6.5 8.5]
inputs 0
outputs 4
op 0 TRANSPOSE_CONV in=[1 2 0 3] out=[4] padding=valid stride_h=1 stride_w=1)",
       })
    expect_values(text);
}

// For any scale, powers of two and values next to them too: as close as a table of 256 steps allows.
TEST(Int16Definition, SigmoidsFollowTheFunction) {
  constexpr double kNear = 2;
  for (const float scale :
       {1 / 8192.0F, 1 / 4096.0F, 1 / 4000.0F, 2 / 4096.0F, 2 / 4000.0F, 4 / 4096.0F, 0.003F, 0.02F}) {
    const SigmoidInput input = sigmoid_input(scale);
    for (int value = INT16_MIN; value <= INT16_MAX; value += 7) {
      const auto at = static_cast<int16_t>(value);
      const double x = static_cast<double>(scale) * value;
      EXPECT_NEAR(int16_logistic(at, input), std::min(32767.0, 32768 / (1 + std::exp(-x))), kNear)
          << scale << " " << at;
      EXPECT_NEAR(int16_tanh(at, input), std::min(32767.0, 32768 * std::tanh(x)), 2 * kNear) << scale << " " << at;
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Int16Definition, WhatHasNoneIsRefused) {
  struct Row {
    const char *text, *reason;
  };
  for (const Row& row : {
           Row{R"(tensor 0 "in" int16 1 scale=0.5 zero=3
tensor 1 "out" int16 1 scale=0.5
inputs 0
outputs 1
op 0 RELU in=[0] out=[1])",
               "zero point 3"},
           Row{R"(tensor 0 "in" int16 1
tensor 1 "out" int16 1 scale=0.5
inputs 0
outputs 1
op 0 RELU in=[0] out=[1])",
               "without quantization"},
           Row{R"(tensor 0 "in" int16 1 scale=0.5
tensor 1 "out" int16 1 scale=0.5
inputs 0
outputs 1
op 0 TANH in=[0] out=[1])",
               "output scale 0.5"},
           Row{R"(tensor 0 "in" int16 1 scale=0.5
tensor 1 "out" int16 1 scale=0.5
inputs 0
outputs 1
op 0 HARD_SWISH in=[0] out=[1])",
               "type int16"},
           Row{R"(tensor 0 "in" int16 1x1 scale=1000000
tensor 1 "w" int8 1x1 scale=1 const=[1]
tensor 2 "out" int16 1x1 scale=0.5
inputs 0
outputs 2
op 0 FULLY_CONNECTED in=[0 1] out=[2])",
               "output scale 0.5 is too small"},
       }) {
    SCOPED_TRACE(row.text);
    const auto graph = ir::parse(row.text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto cpu = Interpreter::create(*graph);
    ASSERT_FALSE(cpu.ok());
    EXPECT_NE(cpu.error().message.find(row.reason), std::string::npos) << cpu.error().message;
  }
}

}  // namespace
}  // namespace skillet::ref
