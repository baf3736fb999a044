// How many rows are sampled for each kind of layer, at the limits too, and which.
#include "graph/quantize/samples.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/splitmix64.h"

namespace skillet::quantize {
namespace {

struct Row {
  const char *input, *filter, *output, *op;
  size_t inferences, rows;
  uint32_t sum;  // of all values, weighted by their places
};

const Row kRows[] = {
    {"1x5x6x3", "4x3x3x3", "1x5x6x4", "CONV_2D in=[0 1 -] out=[2] padding=same", 2, 60, 0x75AC464A},
    {"1x9x6x3", "4x3x2x3", "1x4x5x4", "CONV_2D in=[0 1 -] out=[2] padding=valid stride_h=2 stride_w=1", 2, 40,
     0xB919BF6E},
    {"1x7x9x3", "4x3x3x3", "1x7x9x4", "CONV_2D in=[0 1 -] out=[2] padding=same dilation_h=2 dilation_w=3", 1, 63,
     0x35AD5381},
    {"1x4x4x6", "4x3x1x3", "1x4x4x4", "CONV_2D in=[0 1 -] out=[2] padding=same", 1, 16, 0x5CD4B495},
    {"1x63x65x1", "1x1x1x1", "1x63x65x1", "CONV_2D in=[0 1 -] out=[2] padding=same", 1, 4095, 0x46391AD3},
    {"1x64x64x1", "1x1x1x1", "1x64x64x1", "CONV_2D in=[0 1 -] out=[2] padding=same", 1, 4096, 0x80EA3FBC},
    {"1x17x241x1", "1x1x1x1", "1x17x241x1", "CONV_2D in=[0 1 -] out=[2] padding=same", 1, 4096, 0x80EA3FBC},
    {"1x64x64x1", "1x1x1x1", "1x64x64x1", "CONV_2D in=[0 1 -] out=[2] padding=same", 3, 4095, 0xD38B8231},
    {"1x5x6x2", "1x3x3x4", "1x5x6x4", "DEPTHWISE_CONV_2D in=[0 1 -] out=[2] padding=same depth_multiplier=2", 2, 60,
     0x02FA1670},
    {"1x32x64x1", "1x1x1x1", "1x32x64x1", "DEPTHWISE_CONV_2D in=[0 1 -] out=[2] padding=same depth_multiplier=1", 1,
     2048, 0x4604B799},
    {"1x3x683x1", "1x1x1x1", "1x3x683x1", "DEPTHWISE_CONV_2D in=[0 1 -] out=[2] padding=same depth_multiplier=1", 1,
     2048, 0x4604B799},
    {"3x8", "5x8", "3x5", "FULLY_CONNECTED in=[0 1 -] out=[2]", 2, 6, 0x3247951F}};

ir::Graph graph_of(const Row& row) {
  return ir::parse(fmt::format("graph \"g\"\ntensor 0 \"x\" int8 {} scale=0.05 zero=-3\n"
                               "tensor 1 \"w\" int8 {} scale=0.02 zero=0 const=random:1\n"
                               "tensor 2 \"y\" int8 {} scale=0.5 zero=4\ninputs 0\noutputs 2\nop 0 {}\n",
                               row.input, row.filter, row.output, row.op))
      .value();
}

uint32_t sum_of(const Samples& samples) {
  uint32_t sum = 0;
  for (const float value : samples.values) sum = sum * 31 + static_cast<uint32_t>(static_cast<int>(value));
  return sum;
}

TEST(Samples, AreTheSameOfTheSameInputs) {
  for (const Row& row : kRows) {
    const ir::Graph graph = graph_of(row);
    ASSERT_TRUE(can_sample(graph, 0)) << row.op;
    SplitMix64 random(1);
    std::vector<Bytes> inputs(row.inferences);
    for (Bytes& one : inputs) {
      one.resize(static_cast<size_t>(graph.tensor(0).bytes()));
      for (uint8_t& byte : one) byte = static_cast<uint8_t>(random.next());
    }
    const std::vector<std::span<const uint8_t>> spans(inputs.begin(), inputs.end());
    const Samples samples = sample(graph, 0, spans);
    EXPECT_EQ(samples.rows, row.rows) << row.op << row.output;
    EXPECT_EQ(samples.values.size(), samples.rows * samples.taps * samples.matrices) << row.op;
    EXPECT_EQ(sum_of(samples), row.sum) << row.op << " " << row.output;
  }
}

}  // namespace
}  // namespace skillet::quantize
