#include "graph/passes/lower/weight_scales.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "graph/passes/passes.h"
#include "graph/passes/testing/digests.h"
#include "graph/passes/testing/letters.h"

namespace skillet::passes {
namespace {

// A driver that supports everything, with a limit of weight scales per op.
class ScalesDriver : public AddMulDriver {
 public:
  explicit ScalesDriver(size_t scales) : scales_(scales) {}
  size_t weight_scales_max(const npu::Chip&, const ir::Graph&, ir::OpId) const override { return scales_; }

 private:
  size_t scales_;
};

// Golden text. Channel 1 has half the scale of channel 0; channel 2 moves its output by less than a step.
constexpr std::string_view kBefore =
    "graph \"golden\"\n"
    "tensor 0 \"in\" int8 1x1x1x4 scale=0.5 zero=-128\n"
    "tensor 1 \"filter\" int8 3x1x1x4 scale=[0.25 0.125 0.00025] zero=0 "
    "const=[100 -50 20 127 101 -51 3 127 1 2 3 127]\n"
    "tensor 2 \"bias\" int32 3 scale=[0.125 0.0625 0.000125] zero=0 const=[1000 -1001 7]\n"
    "tensor 3 \"out\" int8 1x1x1x3 scale=OUT zero=-128\n";
constexpr std::string_view kAfter = "inputs 0\noutputs 3\n";

struct Row {
  size_t scales;
  npu::PerChannel mode;
  const char *out_scale, *tensors, *op, *change;
};
constexpr auto kExact = npu::PerChannel::exact, kApproximate = npu::PerChannel::approximate;
constexpr Row kRows[] = {
    {1, kExact, "40", "", "op 0 CONV_2D in=[0 1 2] out=[3]\n", ""},
    {2, kExact, "40",
     "tensor 4 \"filter\" int8 3x1x1x4 scale=[0.25 0.125 0.25] zero=0 "
     "const=[100 -50 20 127 101 -51 3 127 0 0 0 0]\n"
     "tensor 5 \"bias\" int32 3 scale=[0.125 0.0625 0.125] zero=0 const=[1000 -1001 0]\n",
     "op 0 CONV_2D in=[0 4 5] out=[3]\n", "3 weight scales become 2: up to 1 step off, rms 0.03 expected"},
    {1, kApproximate, "10",
     "tensor 4 \"filter\" int8 3x1x1x4 scale=[0.25 0.25 0.25] zero=0 const=[100 -50 20 127 50 -26 2 64 0 0 0 0]\n"
     "tensor 5 \"bias\" int32 3 scale=[0.125 0.125 0.125] zero=0 const=[1000 -501 0]\n",
     "op 0 CONV_2D in=[0 4 5] out=[3]\n", "3 weight scales become 1: up to 4 steps off, rms 0.55 expected"},
    {SIZE_MAX, kApproximate, "40", "", "op 0 CONV_2D in=[0 1 2] out=[3]\n", ""},
};

TEST(ShareWeightScales, TextBeforeAndAfter) {
  for (const Row& row : kRows) {
    std::string before(kBefore);
    before.replace(before.find("OUT"), 3, row.out_scale);
    auto graph = ir::parse(before + std::string(kAfter) + "op 0 CONV_2D in=[0 1 2] out=[3]\n");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const ScalesDriver driver(row.scales);
    std::vector<WeightChange> changes;
    ASSERT_TRUE(run_pipeline(*graph, {&driver, {}, row.mode, &changes}).ok());
    EXPECT_EQ(ir::print(*graph), before + row.tensors + std::string(kAfter) + row.op);
    EXPECT_EQ(changes.empty() ? "" : changes[0].text(), row.change);
  }
}

// A fully connected layer; `dice` decides how far its scales are apart.
template <typename Dice>
ir::Graph random_layer(Dice dice) {
  const int channels = dice(2, 12), taps = dice(1, 30),
            reach = std::array{1, 6, 40, 200}[static_cast<size_t>(dice(0, 3))];
  ir::Graph graph;
  const auto add = [&](ir::DType dtype, ir::Shape shape, ir::Quant quant) {
    return graph.add_tensor({.name = "t", .dtype = dtype, .shape = std::move(shape), .quant = std::move(quant)});
  };
  ir::Quant quant;
  for (int c = 0; c < channels; ++c)
    quant.scales.push_back(0.01F * std::exp2(-0.1F * static_cast<float>(dice(0, reach))));
  quant.scales[0] = 0.011F;
  quant.zero_points.assign(quant.scales.size(), 0);
  add(ir::DType::int8, {1, taps}, {{0.1F}, {dice(-128, 127)}, 0});
  add(ir::DType::int8, {channels, taps}, quant);
  add(ir::DType::int32, {channels}, {});
  add(ir::DType::int8, {1, channels}, {{0.01F * static_cast<float>(dice(1, 200))}, {dice(-128, 127)}, 0});
  Bytes weights, biases(static_cast<size_t>(channels) * 4);
  for (int i = 0; i < channels * taps; ++i) weights.push_back(static_cast<uint8_t>(dice(-127, 127)));
  for (int c = 0; c < channels; ++c) store_le(biases.data() + c * 4, dice(-9000, 9000));
  ir::set_constant(graph.tensor(1), std::move(weights));
  ir::set_constant(graph.tensor(2), std::move(biases));
  graph.add_op(
      {.kind = ir::OpKind::fully_connected, .attrs = ir::FullyConnectedAttrs{}, .inputs = {0, 1, 2}, .outputs = {3}});
  return graph;
}

double real_sum(const WeightedLayer& layer, size_t channel, std::span<const int> input) {
  double sum = layer.biases[channel];
  for (size_t i = 0; i < layer.taps; ++i) sum += layer.weights[channel * layer.taps + i] * input[i];
  return std::clamp(sum * layer.scales[channel] * layer.step, -layer.output_reach, layer.output_reach);
}

// The largest difference in steps between two layers' results, each rounded once, for inputs at the ends of their range
// and within it.
int worst_seen(const WeightedLayer& a, const WeightedLayer& b, std::mt19937& random) {
  int worst = 0;
  std::vector<int> input(a.taps);
  for (size_t channel = 0; channel < a.channels(); ++channel) {
    for (int round = 0; round < 6; ++round) {
      for (size_t i = 0; i < a.taps; ++i) {
        const double off = b.weights[channel * a.taps + i] * double{b.scales[channel]} -
                           a.weights[channel * a.taps + i] * double{a.scales[channel]};
        const bool high = (off > 0) == (round < 3);
        const int share = round % 3 == 0 ? 255 : static_cast<int>(random() % 256);
        input[i] = static_cast<int>(a.low) + (high ? share : 255 - share);
      }
      worst = std::max(worst, static_cast<int>(std::abs(std::round(real_sum(a, channel, input)) -
                                                        std::round(real_sum(b, channel, input)))));
    }
  }
  return worst;
}

void tell(std::string& text, const std::optional<SharedScales>& one) {
  if (!one) {
    text += "none\n";
    return;
  }
  text += fmt::format("{} scales, {} off, {:.3f} expected\n", one->scales, one->worst, one->expected);
  for (const float scale : one->layer.scales) text += fmt::format(" {:.6g}", scale);
  for (const int32_t bias : one->layer.biases) text += fmt::format(" {}", bias);
  for (const int8_t weight : one->layer.weights) text += fmt::format(" {}", weight);
}

// Layers whose scales cannot be shared, each with one thing changed.
TEST(WeightedLayer, IsWhatTensorFlowLiteMeans) {
  std::mt19937 random(4);
  const auto dice = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  ir::Graph graph = random_layer(dice);
  for (size_t i = 0; i < 2; ++i) graph.tensor(1).quant.scales[i] = 0.25F / static_cast<float>(1 + i);
  ASSERT_TRUE(weighted_layer(graph, 0).has_value());
  const auto is_layer = [&](const auto& change) {
    ir::Graph changed = graph;
    change(changed);
    return weighted_layer(changed, 0).has_value();
  };
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.ops[0].kind = ir::OpKind::batch_matmul; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.ops[0].inputs[0] = ir::kNoTensor; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.ops[0].outputs.clear(); }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(0).dtype = ir::DType::uint8; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(3).dtype = ir::DType::int16; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(3).quant = {}; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(1).quant.zero_points[1] = 1; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(1).quant.scales[1] = 0; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(1).data = {}; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(2).dtype = ir::DType::int8; }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) { g.tensor(2).data = g.tensor(2).data.first(4); }));
  EXPECT_FALSE(is_layer([](ir::Graph& g) {
    for (float& scale : g.tensor(1).quant.scales) scale = 0.5F;
  })) << "one scale";
  // Without a bias it is 0.
  ir::Graph bare = graph;
  bare.ops[0].inputs.resize(2);
  const auto layer = weighted_layer(bare, 0);
  ASSERT_TRUE(layer.has_value());
  EXPECT_EQ(layer->biases, std::vector<int32_t>(layer->channels(), 0));
}

// Each scale, bias and weight of layers of all kinds is unchanged. After an intended change: set the new digest.
TEST(WeightScales, AreWhatTheyWere) {
  std::mt19937 random(2);
  const auto dice = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  std::string text;
  for (int round = 0; round < 400; ++round) {
    const auto layer = weighted_layer(random_layer(dice), 0);
    ASSERT_TRUE(layer.has_value());
    tell(text, share_exactly(*layer, 4));
    for (size_t scales = 1; scales <= 5; ++scales) tell(text, share(*layer, scales));
    for (size_t most = 1; most <= 6; ++most) text += fmt::format("{} enough\n", enough_scales(*layer, most));
  }
#ifndef __FP_FAST_FMA  // rounds once where other CPUs round twice
  EXPECT_EQ(fmt::format("{:016x}", digest(text)), "10c113bb86561d07");
#endif
}

// Errors are within the reported bounds, for layers of all kinds.
TEST(WeightScales, ErrorsAreWithinWhatIsSaid) {
  std::mt19937 random(1);
  const auto dice = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  int exact = 0, far = 0;
  for (int round = 0; round < 400; ++round) {
    ir::Graph graph = random_layer(dice);
    const auto layer = weighted_layer(graph, 0);
    ASSERT_TRUE(layer.has_value());
    const auto few = share_exactly(*layer, 4);
    if (few) {
      EXPECT_EQ(few->worst, 1);
    }
    exact += few.has_value();
    for (size_t scales = 1; scales <= 5; ++scales) {
      const SharedScales shared = share(*layer, scales);
      EXPECT_LE(shared.scales, scales);
      EXPECT_LE(worst_seen(*layer, shared.layer, random), shared.worst);
      far += shared.worst > 1;
    }
    if (few) {
      EXPECT_LE(worst_seen(*layer, few->layer, random), 1);
    }
  }
  EXPECT_GT(exact, 40);
  EXPECT_GT(far, 200);
}

TEST(WeightScales, AreOffByNoMoreThanABytesRange) {
  std::mt19937 random(6);
  const auto dice = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  ir::Graph graph = random_layer(dice);
  graph.tensor(3).quant.scales = {1e-6F};
  const auto layer = weighted_layer(graph, 0);
  ASSERT_TRUE(layer.has_value());
  EXPECT_EQ(share(*layer, 1).worst, 255);
}

}  // namespace
}  // namespace skillet::passes
