// Ops with weights, recurrences and convolutions, against explicit results.
#include <fmt/format.h>

#include <cmath>

#include "graph/ref/testing/definition.h"
#include "graph/ref/weighted.h"

namespace skillet::ref {
namespace {

// A channel of scale 0 gives the zero point: TensorFlow Lite multiplies its sums, with the bias, by 0.
TEST(Definition, OfChannelWithScaleZero) {
  for (const char* op : {"CONV_2D", "FULLY_CONNECTED"}) {
    const bool is_conv = op[0] == 'C';
    const char *image = is_conv ? "1x1x2x1" : "2x1", *filter = is_conv ? "2x1x1x1" : "2x1";
    const char* result = is_conv ? "1x1x2x2" : "2x2";
    expect_values(fmt::format(R"(tensor 0 "in" int8 {} scale=1 zero=0 const=[3 -4]
tensor 1 "w" int8 {} scale=[0 1] zero=0 axis=0 const=[100 2]
tensor 2 "b" int32 2 scale=[0 1] zero=0 axis=0 const=[1000 1]
tensor 3 "out" int8 {} scale=1 zero=-5 const=[-5 2 -5 -12]
inputs 0
outputs 3
op 0 {} in=[0 1 2] out=[3])",
                              image, filter, result, op)
                      .c_str());
  }
}

// A sum for which the exact product of scales, and the product rounded to float, give different bytes: by the kernel of
// this CPU, and by the kernel of others.
TEST(Definition, OfBytesWithAScalePerChannel) {
  for (const char* text : {
           R"(tensor 0 "in" int8 2x2x2 scale=[0.5 4] zero=0 axis=1 const=[1 2 3 -4 5 6 7 -128]
tensor 1 "out" float32 2x2x2 const=[0.5 1 12 -16 2.5 3 28 -512]
inputs 0
outputs 1
op 0 DEQUANTIZE in=[0] out=[1])",
           R"(tensor 0 "in" int8 2x3 scale=[1 2 8] zero=[0 1 2] axis=1 const=[1 2 3 4 5 6]
tensor 1 "out" float32 2x3 const=[1 2 8 4 8 32]
inputs 0
outputs 1
op 0 DEQUANTIZE in=[0] out=[1])",
       })
    expect_values(text);
}

TEST(Definition, OfRoundedProductOfScales) {
  constexpr float kIn = 0.3F, kFilter = 0.7F, kOut = 2e6F;
  constexpr int kSteps = 100;
  const double exact = double{kIn} * kFilter, rounded = double{kIn * kFilter};
  const long sum = std::lround((kSteps + 0.5) * kOut * (1 / exact + 1 / rounded) / 2);
  for (const bool float_product : {false, true}) {
    const double product = float_product ? rounded : exact;
    const int wanted = product * static_cast<double>(sum) > (kSteps + 0.5) * kOut ? kSteps + 1 : kSteps;
    const std::string text = fmt::format(R"(graph "product"
tensor 0 "in" int8 1x1x1x1 scale=0.3 zero=0 const=[0]
tensor 1 "w" int8 1x1x1x1 scale=0.7 zero=0 const=[1]
tensor 2 "b" int32 1 const=[{}]
tensor 3 "out" int8 1x1x1x1 scale={} zero=0 const=[{}]
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] float_product={}
)",
                                         sum, kOut, wanted, float_product);
    expect_values(text.c_str());
    auto graph = ir::parse(text);
    ASSERT_TRUE(graph.ok());
    auto kernel = prepare_wide_layer(Context(*graph, 0));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    Bytes in(1, 0), out(1, 0);
    std::vector<std::span<uint8_t>> tensors = {in, {}, {}, out};
    ASSERT_TRUE((*kernel)->run(tensors).ok());
    EXPECT_EQ(static_cast<int8_t>(out[0]), wanted);
  }
}

// The kernels for processors without vectors of bytes.
TEST(Definition, WideKernelsComputeTheSame) {
  const char* const texts[] = {R"(tensor 0 "in" {0} 1x5x6x7 scale=0.3 zero=9
tensor 1 "w" {0} 9x3x3x7 scale=0.02 zero={1} const=random:1
tensor 2 "b" int32 9 const=random:2
tensor 3 "out" {0} 1x5x6x9 scale=2.5 zero=11
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 {2}] out=[3] activation=relu
)",
                               R"(tensor 0 "in" {0} 3x19 scale=0.3 zero=9
tensor 1 "w" {0} 9x19 scale=0.02 zero={1} const=random:1
tensor 2 "b" int32 9 const=random:2
tensor 3 "out" {0} 3x9 scale=1.5 zero=11
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 {2}] out=[3]
)"};
  for (const char* const text : texts) {
    for (const auto& [type, zero] : {std::pair("int8", 0), {"uint8", 127}}) {
      for (const char* bias : {"2", "-"}) {
        const auto graph = ir::parse("graph \"\"\n" + fmt::format(fmt::runtime(text), type, zero, bias));
        ASSERT_TRUE(graph.ok()) << graph.error().message;
        auto all = Interpreter::create(*graph);
        ASSERT_TRUE(all.ok()) << all.error().message;
        Bytes in(static_cast<size_t>(graph->tensor(0).bytes())), out(static_cast<size_t>(graph->tensor(3).bytes()));
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 37);
        std::ranges::copy(in, all->tensor(0).begin());
        ASSERT_TRUE(all->run().ok());
        auto kernel = prepare_wide_layer(Context(*graph, 0));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        Bytes weights(graph->tensor(1).data.begin(), graph->tensor(1).data.end()),
            added(graph->tensor(2).data.begin(), graph->tensor(2).data.end());
        const std::vector<std::span<uint8_t>> tensors = {in, weights, added, out};
        ASSERT_TRUE((*kernel)->run(tensors).ok());
        EXPECT_TRUE(std::ranges::equal(out, all->tensor(3))) << graph->tensor(3).name << " " << type << " " << bias;
        EXPECT_NE(out, Bytes(out.size()));
      }
    }
  }
}

// Open gates, so that each step gives the tangent of its input: for two images, the second time of twice as much,
// because cells keep their value.
TEST(Definition, OfRecurrence) {
  expect_values(R"(tensor 0 "in" float32 2x2x1 const=[100 0 -100 -100]
tensor 1 "i" float32 1x1 const=[0]
tensor 2 "f" float32 1x1 const=[0]
tensor 3 "c" float32 1x1 const=[1]
tensor 4 "o" float32 1x1 const=[0]
tensor 5 "r" float32 1x1 const=[0]
tensor 6 "open" float32 1 const=[100]
tensor 7 "none" float32 1 const=[0]
tensor 8 "state" float32 2x1 variable
tensor 9 "cells" float32 2x1 variable
tensor 10 "out" float32 2x2x1 const=[0.76159418 0.76159418 -0.76159418 -0.96402758]
inputs 0
outputs 10
op 0 UNIDIRECTIONAL_SEQUENCE_LSTM in=[0 1 2 3 4 5 5 5 5 - - - 6 6 7 6 - - 8 9] out=[10] activation=tanh)");
}

// Cells that are clipped, also below 1.
TEST(Definition, OfClippedRecurrence) {
  expect_values(R"(tensor 0 "in" float32 2x2x1 const=[100 0 -100 -100]
tensor 1 "none" float32 1x1 const=[0]
tensor 2 "c" float32 1x1 const=[1]
tensor 3 "open" float32 1 const=[100]
tensor 4 "zero" float32 1 const=[0]
tensor 5 "state" float32 2x1 variable
tensor 6 "cells" float32 2x1 variable
tensor 7 "out" float32 2x2x1 const=[0.46211717 0.46211717 -0.46211717 -0.46211717]
inputs 0
outputs 7
op 0 UNIDIRECTIONAL_SEQUENCE_LSTM in=[0 1 1 2 1 1 1 1 1 - - - 3 3 4 3 - - 5 6] out=[7] activation=tanh cell_clip=0.5)");
}

// The same in integers, with cells in units of 2^-11 and gates of 2^-12: for x and -x, two steps. tanh(0.5) is 59/128,
// tanh(1) 97/128, tanh(2) 123/128; a projection keeps nearly all of it, in units of 2^-6.
TEST(Definition, OfRecurrenceInIntegers) {
  const struct Row {
    const char *projection, *scale, *attrs, *out;
  } rows[] = {
      {"-", "0.0078125", "", "[97 -97 123 -123]"},
      {"-", "0.0078125", "cell_clip=0.5", "[59 -59 59 -59]"},
      {"-", "0.0078125", "cell_clip=100", "[97 -97 123 -123]"},
      {"8", "0.015625", "", "[48 -48 61 -61]"},
      {"8", "0.015625", "projection_clip=0.5", "[32 -32 32 -32]"},
      {"8", "0.015625", "projection_clip=100", "[48 -48 61 -61]"},
      {"8", "0.015625", "projection_clip=0.875 cell_clip=1.5", "[48 -48 56 -56]"},
  };
  for (const Row& row : rows)
    expect_values(fmt::format(R"(tensor 0 "in" int8 2x2x1 scale=0.015625 const=[127 -127 127 -127]
tensor 1 "none" int8 1x1 scale=0.015625 const=[0]
tensor 2 "c" int8 1x1 scale=0.015625 const=[127]
tensor 3 "open" int32 1 const=[100000]
tensor 4 "zero" int32 1 const=[0]
tensor 5 "state" int8 2x1 scale={1} variable
tensor 6 "cells" int16 2x1 scale=0.00048828125 variable
tensor 7 "out" int8 2x2x1 scale={1} const={3}
tensor 8 "most" int8 1x1 scale=0.0078125 const=[127]
inputs 0
outputs 7
op 0 UNIDIRECTIONAL_SEQUENCE_LSTM in=[0 1 1 2 1 1 1 1 1 - - - 3 3 4 3 {0} - 5 6] out=[7] activation=tanh time_major=true hidden_scale=0.0078125 {2})",
                              row.projection, row.scale, row.attrs, row.out)
                      .c_str());
}

// Each image of a batch, padding, with and without bias, a range; two input channels read by all filters, or each by
// its own.
TEST(Definition, OfRealSums) {
  for (const char* text : {
           R"(tensor 0 "in" float32 2x1x3x2 const=[1 2 3 4 5 6 -1 -2 -3 -4 -5 -6]
tensor 1 "w" float32 2x1x2x2 const=[1 0 0 1 0 1 1 0]
tensor 2 "b" float32 2 const=[0.5 10]
tensor 3 "out" float32 2x1x3x2 const=[5.5 15 9.5 19 5.5 16 -4.5 5 -8.5 1 -4.5 4]
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3])",
           R"(tensor 0 "in" float32 2x1x3x2 const=[1 2 3 4 5 6 -1 -2 -3 -4 -5 -6]
tensor 1 "w" float32 1x1x2x4 const=[1 0 0 1 0 1 1 0]
tensor 2 "out" float32 2x1x2x4 const=[1 3 4 2 3 5 6 4 0 0 0 0 0 0 0 0]
inputs 0
outputs 2
op 0 DEPTHWISE_CONV_2D in=[0 1] out=[2] padding=valid depth_multiplier=2 activation=relu)",
           R"(tensor 0 "in" float32 1x3x1x1 const=[1 2 3]
tensor 1 "w" float32 1x2x1x1 const=[1 10]
tensor 2 "out" float32 1x1x1x1 const=[6]
inputs 0
outputs 2
op 0 CONV_2D in=[0 1] out=[2] padding=valid dilation_h=2 activation=relu6)",
           R"(tensor 0 "in" float32 2x2 const=[1 2 -1 0]
tensor 1 "w" float32 2x2 const=[1 2 3 4]
tensor 2 "b" float32 2 const=[0.5 -20]
tensor 3 "out" float32 2x2 const=[5.5 -9 -0.5 -23]
inputs 0
outputs 3
op 0 FULLY_CONNECTED in=[0 1 2] out=[3])",
           R"(tensor 0 "in" float32 2x2 const=[1 2 -1 0]
tensor 1 "w" float32 2x2 const=[1 2 3 4]
tensor 2 "out" float32 2x2 const=[5 11 0 0]
inputs 0
outputs 2
op 0 FULLY_CONNECTED in=[0 1] out=[2] activation=relu)",
       })
    expect_values(text);
}

// Two channels, each pixel in a separate square: a sum is a product and the bias.
TEST(Definition, OfTransposedConvolutionWithBias) {
  expect_values(
      "graph \"g\"\ntensor 0 \"s\" int32 4 const=[1 2 4 2]\ntensor 1 \"w\" int8 2x2x2x1 scale=1 zero=0 const=[1 2 3 4 "
      "-1 0 2 1]\n"
      "tensor 2 \"a\" int8 1x1x2x1 scale=0.5 zero=1 const=[4 -1]\ntensor 3 \"b\" int32 2 scale=0.5 zero=0 const=[10 "
      "-7]\n"
      "tensor 4 \"c\" int8 1x2x4x2 scale=0.5 zero=5 const=[18 -5 21 -2 13 0 11 -2 24 4 27 1 9 -6 7 -4]\n"
      "inputs 2\noutputs 4\nop 0 TRANSPOSE_CONV in=[0 1 2 3] out=[4] padding=valid stride_h=2 stride_w=2\n");
  expect_values(
      "graph \"g\"\ntensor 0 \"s\" int32 4 const=[1 2 4 2]\ntensor 1 \"w\" uint8 2x2x2x1 scale=1 zero=100 const=[101 "
      "102 103 104 99 100 102 101]\n"
      "tensor 2 \"a\" uint8 1x1x2x1 scale=0.5 zero=128 const=[131 126]\ntensor 3 \"b\" int32 2 scale=0.5 zero=0 "
      "const=[10 -7]\n"
      "tensor 4 \"c\" uint8 1x2x4x2 scale=0.5 zero=100 const=[113 90 116 93 108 95 106 93 119 99 122 96 104 89 102 "
      "91]\n"
      "inputs 2\noutputs 4\nop 0 TRANSPOSE_CONV in=[0 1 2 3] out=[4] padding=valid stride_h=2 stride_w=2\n");
  expect_values(
      "graph \"g\"\ntensor 0 \"s\" int32 4 const=[1 2 4 2]\ntensor 1 \"w\" float32 2x2x2x1 const=[1 2 3 4 -1 0 2 1]\n"
      "tensor 2 \"a\" float32 1x1x2x1 const=[3 -2]\ntensor 3 \"b\" float32 2 const=[10 -7]\n"
      "tensor 4 \"c\" float32 1x2x4x2 const=[13 -10 16 -7 8 -5 6 -7 19 -1 22 -4 4 -11 2 -9]\n"
      "inputs 2\noutputs 4\nop 0 TRANSPOSE_CONV in=[0 1 2 3] out=[4] padding=valid stride_h=2 stride_w=2\n");
}

// From the start, by steps, up to the limit, exclusive.
TEST(Definition, OfRange) {
  const auto range = [](const char* type, const char* start, const char* limit, const char* step, const char* values) {
    const auto count = 1 + std::ranges::count(std::string_view(values), ' ');
    expect_values(
        fmt::format("graph \"g\"\ntensor 0 \"a\" {0} scalar const=[{1}]\ntensor 1 \"b\" {0} scalar const=[{2}]\n"
                    "tensor 2 \"c\" {0} scalar const=[{3}]\ntensor 3 \"d\" {0} {5} const=[{4}]\n"
                    "outputs 3\nop 0 RANGE in=[0 1 2] out=[3]\n",
                    type, start, limit, step, values, count)
            .c_str());
  };
  for (const char* type : {"int32", "int64", "float32"}) {
    range(type, "2", "6", "1", "2 3 4 5");
    range(type, "5", "-4", "-3", "5 2 -1");
    range(type, "-7", "8", "4", "-7 -3 1 5");
  }
  range("float32", "1.5", "2.75", "0.5", "1.5 2 2.5");
}

}  // namespace
}  // namespace skillet::ref
