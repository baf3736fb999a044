#include "graph/quantize/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/quantize/headroom.h"
#include "graph/quantize/rounding.h"
#include "graph/quantize/samples.h"
#include "graph/ref/ref.h"

namespace skillet::quantize {
namespace {

// Networks with random weights whose scales differ by up to a factor of `spread`, and data with correlated channels.
class Maker {
 public:
  explicit Maker(uint32_t seed, double spread = 30) : random_(seed), spread_(spread) {}

  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

  ir::TensorId image(ir::Graph& graph, ir::Shape shape, float scale) {
    return graph.add_tensor({.name = "image",
                             .dtype = ir::DType::int8,
                             .shape = std::move(shape),
                             .quant = {.scales = {scale}, .zero_points = {-3}},
                             .owner = {}});
  }
  int groups = 1;  // in each CONV_2D
  // A layer that reads `from`; `window`: rows and columns of its filters.
  ir::TensorId layer(ir::Graph& graph, ir::TensorId from, ir::OpKind kind, int channels, int window, float out_scale,
                     ir::Activation activation = ir::Activation::relu6, bool has_bias = true) {
    const ir::Tensor input = graph.tensor(from);
    const bool depthwise = kind == ir::OpKind::depthwise_conv_2d;
    const ir::Shape shape = depthwise ? ir::Shape{1, window, window, channels}
                                      : ir::Shape{channels, window, window, input.shape[3] / groups};
    ir::Tensor filter{.name = "filter", .dtype = ir::DType::int8, .shape = shape, .owner = {}};
    filter.quant.axis = depthwise ? 3 : 0;
    for (int c = 0; c < channels; ++c)
      filter.quant.scales.push_back(static_cast<float>(0.02 / std::pow(spread_, real(0, 1))));
    filter.quant.zero_points.assign(static_cast<size_t>(channels), 0);
    set_weights(filter, channels, depthwise);
    ir::Tensor bias{.name = "bias", .dtype = ir::DType::int32, .shape = {channels}, .owner = {}};
    bias.quant = filter.quant;
    bias.quant.axis = 0;
    Bytes bytes(static_cast<size_t>(channels) * sizeof(int32_t));
    for (int c = 0; c < channels; ++c) {
      bias.quant.scales[static_cast<size_t>(c)] *= input.quant.scale();
      store_le(bytes.data() + c * 4, whole(-3000, 3000));
    }
    ir::set_constant(bias, std::move(bytes));
    ir::Op op{.kind = kind, .source_index = static_cast<int32_t>(graph.ops.size())};
    op.inputs = {from, graph.add_tensor(std::move(filter))};
    const int stride = kind == ir::OpKind::transpose_conv ? 2 : 1;
    ir::Shape out_shape{1, stride * input.shape[1], stride * input.shape[2], channels};
    if (stride > 1) op.inputs = {shape_operand(graph, out_shape), op.inputs[1], from};
    if (has_bias) op.inputs.push_back(graph.add_tensor(std::move(bias)));
    const ir::TensorId out = graph.add_tensor({.name = "out",
                                               .dtype = ir::DType::int8,
                                               .shape = std::move(out_shape),
                                               .quant = {.scales = {out_scale}, .zero_points = {-128}},
                                               .owner = {}});
    op.outputs = {out};
    op.attrs = ir::ConvAttrs{.stride_h = stride, .stride_w = stride, .activation = activation};
    graph.add_op(std::move(op));
    return out;
  }
  static ir::TensorId shape_operand(ir::Graph& graph, const ir::Shape& shape) {
    ir::Tensor out{.name = "shape", .dtype = ir::DType::int32, .shape = {4}, .owner = {}};
    Bytes bytes(16);
    for (int i = 0; i < 4; ++i) store_le(bytes.data() + 4 * i, shape[i]);
    ir::set_constant(out, std::move(bytes));
    return graph.add_tensor(std::move(out));
  }
  // Smooth in both directions and across channels.
  Inputs data(const ir::Graph& graph) {
    const ir::Tensor& image = graph.tensor(graph.inputs[0]);
    Bytes out;
    const double a = real(0.1, 0.6), b = real(0.1, 0.6), phase = real(0, 6);
    for (int y = 0; y < image.shape[1]; ++y)
      for (int x = 0; x < image.shape[2]; ++x)
        for (int c = 0; c < image.shape[3]; ++c)
          out.push_back(static_cast<uint8_t>(static_cast<int8_t>(std::lround(
              90 * std::sin(a * x + b * y + phase) * (1 + 0.1 * c) / (1 + 0.1 * image.shape[3]) + real(-9, 9)))));
    return {std::move(out)};
  }
  std::vector<Inputs> several(const ir::Graph& graph, size_t count) {
    std::vector<Inputs> out;
    for (size_t i = 0; i < count; ++i) out.push_back(data(graph));
    return out;
  }
  // 3x3, depthwise 3x3, 1x1 without bias.
  ir::Graph network() {
    ir::Graph graph("network");
    graph.inputs = {image(graph, {1, 12, 12, 4}, 0.02F)};
    ir::TensorId at = layer(graph, graph.inputs[0], ir::OpKind::conv_2d, 10, 3, 6 / 255.0F);
    at = layer(graph, at, ir::OpKind::depthwise_conv_2d, 10, 3, 6 / 255.0F);
    at = layer(graph, at, ir::OpKind::conv_2d, 7, 1, 0.05F, ir::Activation::none, false);
    graph.outputs = {at};
    EXPECT_TRUE(ir::verify(graph).ok());
    return graph;
  }

 private:
  // The largest weight of a channel is 127, as converters make them.
  void set_weights(ir::Tensor& filter, int channels, bool depthwise) {
    Bytes bytes(static_cast<size_t>(filter.shape.elems()));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(whole(-90, 90));
    const size_t taps = bytes.size() / static_cast<size_t>(channels);
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
      bytes[depthwise ? c : c * taps] = static_cast<uint8_t>(int8_t{127});
    ir::set_constant(filter, std::move(bytes));
  }

  std::mt19937 random_;
  double spread_;
};

Options with(size_t scales, double error = 0) {
  Options out;
  out.error = error;
  out.scales_max = [scales](ir::OpId) { return scales; };
  return out;
}

Quantized made_of(const ir::Graph& model, const std::vector<Inputs>& seen, const std::vector<Inputs>& held,
                  const Options& options) {
  auto out = quantize(model, seen, held, options);
  EXPECT_TRUE(out.ok()) << out.error().message;
  return out.ok() ? std::move(*out) : Quantized();
}

std::vector<std::span<const uint8_t>> firsts(const std::vector<Inputs>& sets) {
  std::vector<std::span<const uint8_t>> out;
  for (const Inputs& one : sets) out.emplace_back(one[0]);
  return out;
}

TEST(Rounding, NoChannelIsFurtherOffThanPlainlyRounded) {
  double squares = 0, plain_squares = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Maker maker(seed, std::array{2.0, 30.0, 1000.0}[seed % 3]);
    ir::Graph graph("layer");
    const int channels = maker.whole(2, 12);
    const bool depthwise = seed % 4 == 3;
    graph.inputs = {maker.image(graph, {1, 8, 8, depthwise ? channels : maker.whole(1, 30)}, 0.02F)};
    maker.layer(graph, graph.inputs[0], depthwise ? ir::OpKind::depthwise_conv_2d : ir::OpKind::conv_2d, channels,
                maker.whole(1, 3), 0.05F);
    const auto sets = maker.several(graph, 3);
    const auto layer = passes::weighted_layer(graph, 0);
    ASSERT_TRUE(layer) << seed;
    const Samples samples = sample(graph, 0, firsts(sets));
    const Limits limits = output_limits(graph, 0);
    const Rounding rounding(*layer, samples, limits);
    for (const size_t scales : {1, 2, 4}) {
      const Fit fed = fit_of(*layer, rounding.round(scales), samples, limits);
      const Fit plain = fit_of(*layer, round_plainly(*layer, samples, scales), samples, limits);
      EXPECT_LE(fed.rms(), plain.rms() * (1 + 1e-9)) << "seed " << seed << ", " << scales << " scales";
      EXPECT_EQ(fed.values, plain.values);
      squares += fed.squares;
      plain_squares += plain.squares;
    }
  }
  EXPECT_LT(squares, 0.5 * plain_squares) << "it gains nothing";
}

// Values computed from samples equal the layers' results of graph/ref/.
void expect_fit_of_outputs(ir::OpKind kind, int window, float scale, ir::Padding padding = ir::Padding::same,
                           int groups = 1) {
  Maker maker(7, 100);
  maker.groups = groups;
  ir::Graph graph("layer");
  graph.inputs = {maker.image(graph, {1, 9, 9, groups > 1 ? 6 : 5}, 0.02F)};
  graph.outputs = {maker.layer(graph, graph.inputs[0], kind, 6, window, scale, ir::Activation::relu)};
  std::get<ir::ConvAttrs>(graph.ops[0].attrs).padding = padding;
  const auto sets = maker.several(graph, 2);
  const Quantized made = made_of(graph, sets, sets, with(1));
  ASSERT_EQ(made.layers.size(), 1U);
  double squares = 0, values = 0;
  for (const Inputs& inputs : sets) {
    auto before = ref::Interpreter::create(graph), after = ref::Interpreter::create(made.graph);
    ASSERT_TRUE(before.ok() && after.ok());
    for (ref::Interpreter* one : {&*before, &*after}) {
      std::ranges::copy(inputs[0], one->tensor(graph.inputs[0]).begin());
      ASSERT_TRUE(one->run().ok());
    }
    const auto a = before->tensor(graph.outputs[0]), b = after->tensor(graph.outputs[0]);
    for (size_t i = 0; i < a.size(); ++i) {
      const int x = static_cast<int8_t>(a[i]), y = static_cast<int8_t>(b[i]), is_inside = x > -128 && x < 127;
      squares += is_inside * (x - y) * (x - y);
      values += is_inside;
    }
  }
  // Both outputs are rounded: each square is off by at most a twelfth.
  EXPECT_NEAR(std::sqrt(squares / values), std::hypot(made.layers[0].seen.rms(), std::sqrt(1 / 6.0)), 0.15);
  EXPECT_GT(made.layers[0].seen.rms(), 0.1);
  EXPECT_DOUBLE_EQ(made.layers[0].seen.rms(), made.layers[0].held.rms());
}

TEST(Rounding, TheFitIsThatOfTheLayersOutputs) {
  expect_fit_of_outputs(ir::OpKind::conv_2d, 3, 0.02F);
  expect_fit_of_outputs(ir::OpKind::conv_2d, 3, 0.01F, ir::Padding::same, 3);
  expect_fit_of_outputs(ir::OpKind::transpose_conv, 3, 0.002F);
  expect_fit_of_outputs(ir::OpKind::transpose_conv, 2, 0.002F, ir::Padding::valid);
}

// Data in which a layer's input never changes shows nothing about its weights: any rounding looks exact on it.
TEST(Rounding, AnInputThatNeverChangesIsTakenAsSpreadEvenly) {
  for (const auto kind : {ir::OpKind::conv_2d, ir::OpKind::depthwise_conv_2d}) {
    Maker maker(11, 100);
    ir::Graph graph("constant");
    graph.inputs = {maker.image(graph, {1, 9, 9, 5}, 0.02F)};
    graph.outputs = {maker.layer(graph, graph.inputs[0], kind, 5, 3, 0.05F)};
    Inputs grey = {Bytes(9 * 9 * 5)};
    for (size_t i = 0; i < grey[0].size(); ++i) grey[0][i] = static_cast<uint8_t>(20 + i % 5);
    const auto varied = maker.several(graph, 16);
    const Quantized blind = made_of(graph, {grey, grey}, varied, with(1)), seeing = made_of(graph, varied, {}, with(1));
    ASSERT_TRUE(blind.layers.size() == 1 && seeing.layers.size() == 1);
    EXPECT_FALSE(blind.layers[0].input_varies);
    EXPECT_TRUE(seeing.layers[0].input_varies);
    EXPECT_GT(blind.layers[0].seen.rms(), 0.1);
    // Data that varies is still measured, and the new weights are good for it too.
    EXPECT_GT(blind.layers[0].held.values, 0U);
    EXPECT_LT(blind.layers[0].held.rms(), 2 * blind.layers[0].seen.rms());
    EXPECT_EQ(made_of(graph, {grey}, {grey}, with(1)).layers[0].held.values, 0U);
    // A change of one pixel of one inference is detected.
    Inputs spot = grey;
    spot[0][7] ^= 1;
    EXPECT_TRUE(made_of(graph, {grey, spot}, {}, with(1)).layers[0].input_varies);
    EXPECT_TRUE(made_of(graph, {spot}, {}, with(1)).layers[0].input_varies);
  }
}

TEST(Headroom, IsNotTakenFromAnInputThatNeverChanges) {
  Maker maker(5, 100);
  const ir::Graph graph = maker.network();
  const Inputs grey = {Bytes(static_cast<size_t>(graph.tensor(graph.inputs[0]).bytes()), 3)};
  for (const Layer& one : made_of(graph, {grey}, {}, with(1)).layers) {
    if (!one.input_varies) {
      EXPECT_EQ(one.headroom, 1);
    }
  }
  double largest = 1;
  for (const Layer& one : made_of(graph, maker.several(graph, 4), {}, with(1)).layers)
    largest = std::max(largest, one.headroom);
  EXPECT_GT(largest, 1);
}

TEST(Rounding, ChannelsOfZerosDecideNothing) {
  Maker maker(3);
  ir::Graph graph("zeros");
  graph.inputs = {maker.image(graph, {1, 6, 6, 3}, 0.02F)};
  maker.layer(graph, graph.inputs[0], ir::OpKind::conv_2d, 4, 1, 0.05F);
  passes::WeightedLayer layer = *passes::weighted_layer(graph, 0);
  const auto sets = maker.several(graph, 2);
  const Samples samples = sample(graph, 0, firsts(sets));
  const Limits limits = output_limits(graph, 0);
  std::fill_n(layer.weights.begin() + 3, 3, int8_t{0});  // channel 1, with by far the largest scale
  layer.scales[1] = 50;
  const passes::WeightedLayer out = Rounding(layer, samples, limits).round(1);
  const float largest = std::max({layer.scales[0], layer.scales[2], layer.scales[3]});
  for (const float scale : out.scales) EXPECT_EQ(scale, largest);
  for (size_t i = 3; i < 6; ++i) EXPECT_EQ(out.weights[i], 0);
  EXPECT_NEAR(out.biases[1] * out.scales[1], layer.biases[1] * layer.scales[1], out.scales[1]);

  std::ranges::fill(layer.weights, int8_t{0});
  const passes::WeightedLayer zeros = Rounding(layer, samples, limits).round(1);
  EXPECT_EQ(zeros.weights, layer.weights);
  for (const float scale : zeros.scales) EXPECT_TRUE(std::isnormal(scale));
  EXPECT_LT(fit_of(layer, zeros, samples, limits).rms(), 1e3 * 50 * 0.02 / 0.05);
}

// A bias that does not fit int32 in the new scale: the layer stays as it is.
TEST(Rounding, AScaleThatABiasDoesNotBearIsNotTaken) {
  Maker maker(5);
  ir::Graph graph("bias");
  graph.inputs = {maker.image(graph, {1, 6, 6, 3}, 0.02F)};
  maker.layer(graph, graph.inputs[0], ir::OpKind::conv_2d, 3, 1, 0.05F);
  passes::WeightedLayer layer = *passes::weighted_layer(graph, 0);
  std::fill_n(layer.weights.begin(), 3, int8_t{1});
  layer.scales[0] = 1e30F;
  layer.biases[0] = 1 << 29;
  layer.scales[1] = layer.scales[2] = 1e-5F;
  const Samples samples = sample(graph, 0, firsts(maker.several(graph, 2)));
  const passes::WeightedLayer out = Rounding(layer, samples, output_limits(graph, 0)).round(1);
  EXPECT_EQ(out.scales, layer.scales);
  EXPECT_EQ(out.weights, layer.weights);
}

// Weights at the end of their range, rounded to another scale: none leaves -127 to 127, and each stays near its old
// value, for either rounding.
TEST(Rounding, WeightsStopAtTheEndOfTheirRange) {
  Maker maker(11);
  ir::Graph graph("ends");
  graph.inputs = {maker.image(graph, {1, 6, 6, 4}, 0.02F)};
  maker.layer(graph, graph.inputs[0], ir::OpKind::conv_2d, 6, 1, 0.05F);
  passes::WeightedLayer layer = *passes::weighted_layer(graph, 0);
  // Only -128 and 127, in scales slightly apart: in a shared scale some still round to -128, which is not allowed.
  for (size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = i % 3 == 0 ? int8_t{-128} : int8_t{127};
  for (size_t c = 0; c < layer.channels(); ++c) layer.scales[c] = 0.01F * (1 + 0.0005F * static_cast<float>(c));
  const Samples samples = sample(graph, 0, firsts(maker.several(graph, 2)));
  const Limits limits = output_limits(graph, 0);
  for (const size_t scales : {1, 2}) {
    for (const passes::WeightedLayer& out :
         {round_plainly(layer, samples, scales), Rounding(layer, samples, limits).round(scales)}) {
      for (size_t i = 0; i < out.weights.size(); ++i) {
        const size_t c = i / layer.taps;
        EXPECT_EQ(out.weights[i] < 0, layer.weights[i] < 0) << i;
        EXPECT_GE(out.weights[i], out.scales[c] == layer.scales[c] ? -128 : -127);
        EXPECT_NEAR(out.weights[i] * out.scales[c], layer.weights[i] * layer.scales[c], 4 * layer.scales[c]) << i;
      }
    }
  }
}

// In a scale of a quarter a bias is four times as large: up to 2^30; otherwise the layer stays as it is.
TEST(Rounding, ABiasIsTakenUpToItsEndOnly) {
  Maker maker(12);
  ir::Graph graph("bias");
  graph.inputs = {maker.image(graph, {1, 6, 6, 3}, 0.02F)};
  maker.layer(graph, graph.inputs[0], ir::OpKind::conv_2d, 2, 1, 0.05F);
  passes::WeightedLayer layer = *passes::weighted_layer(graph, 0);
  const Samples samples = sample(graph, 0, firsts(maker.several(graph, 2)));
  const Limits limits = output_limits(graph, 0);
  layer.scales = {0.02F, 0.08F};
  layer.weights = {127, 127, 127, 1, 1, 1};
  constexpr int32_t kEnd = 1 << 28;
  for (const int32_t bias : {kEnd - 1, kEnd, kEnd + 1, 2 * kEnd, 4 * kEnd, INT32_MAX}) {
    for (const int32_t signed_bias : {bias, -bias}) {
      layer.biases = {5, signed_bias};
      for (const passes::WeightedLayer& out :
           {round_plainly(layer, samples, 1), Rounding(layer, samples, limits).round(1)}) {
        EXPECT_EQ(out.scales != layer.scales, bias < kEnd) << signed_bias;
        EXPECT_EQ(out.biases[1], bias < kEnd ? 4 * signed_bias : signed_bias);
        EXPECT_EQ(out.weights[3], bias < kEnd ? 4 : 1);
      }
    }
  }
}

// The second layer's bias grows as its scale shrinks, and is limited too.
TEST(Headroom, LeavesRoomForTheBias) {
  Maker maker(2, 200);
  const ir::Graph graph = maker.network();
  const passes::WeightedLayer first = *passes::weighted_layer(graph, 0);
  const Limits limits = output_limits(graph, 0);
  const std::vector<Range> ranges(first.channels(), {0, 1});
  size_t stopped = 0;
  for (const int32_t bias : {1 << 20, 1 << 28, -(1 << 28), 1 << 29, INT32_MAX, INT32_MIN}) {
    passes::WeightedLayer a = first, b = *passes::weighted_layer(graph, 1);
    const auto free = headroom(a, b, ranges, limits);
    std::ranges::fill(b.biases, bias);
    const auto factors = headroom(a, b, ranges, limits);
    for (size_t c = 0; c < factors.size(); ++c) {
      const double room = std::max(1.0, (1 << 30) / std::abs(static_cast<double>(bias)));
      EXPECT_DOUBLE_EQ(factors[c], std::min(free[c], room)) << bias;
      stopped += room < free[c] ? 1 : 0;
    }
    grow(a, b, factors);
    for (size_t c = 0; c < factors.size(); ++c) EXPECT_EQ(b.biases[c] < 0, bias < 0) << bias;
  }
  EXPECT_GT(stopped, 10U);
}

TEST(Headroom, IsTheSameInRealNumbersAndStaysWithinTheLimits) {
  size_t grown = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    Maker maker(seed, 200);
    const ir::Graph graph = maker.network();
    ASSERT_EQ(depthwise_reader(graph, 0), 1);
    EXPECT_EQ(depthwise_reader(graph, 1), std::nullopt);
    EXPECT_EQ(depthwise_reader(graph, 2), std::nullopt);
    const passes::WeightedLayer first = *passes::weighted_layer(graph, 0), second = *passes::weighted_layer(graph, 1);
    passes::WeightedLayer a = first, b = second;
    const Limits limits = output_limits(graph, 0);
    std::vector<Range> ranges;
    for (size_t c = 0; c < a.channels(); ++c) ranges.push_back({0, maker.real(0, 255)});
    const std::vector<double> factors = headroom(a, b, ranges, limits);
    grow(a, b, factors);
    EXPECT_EQ(a.weights, first.weights);
    EXPECT_EQ(b.weights, second.weights);
    EXPECT_EQ(a.biases, first.biases);
    for (size_t c = 0; c < a.channels(); ++c) {
      EXPECT_GE(factors[c], 1);
      EXPECT_LE(ranges[c].high * factors[c], std::max(ranges[c].high, limits.high / 1.1) * (1 + 1e-9));
      EXPECT_LE(a.scales[c], std::ranges::max(first.scales) * 1.000001F);
      EXPECT_NEAR(a.scales[c] * b.scales[c], first.scales[c] * second.scales[c],
                  1e-5 * first.scales[c] * second.scales[c]);
      EXPECT_NEAR(b.biases[c] * double{b.scales[c]}, second.biases[c] * double{second.scales[c]},
                  0.51 * b.scales[c] + 1e-6 * std::abs(second.biases[c] * double{second.scales[c]}));
      grown += factors[c] > 1.01 ? 1 : 0;
    }
  }
  EXPECT_GT(grown, 30U);
}

TEST(Headroom, OnlyWhereADepthwiseLayerAloneReads) {
  Maker maker(1);
  ir::Graph graph = maker.network();
  graph.outputs.push_back(graph.op(0).outputs[0]);  // another reader
  EXPECT_EQ(depthwise_reader(graph, 0), std::nullopt);
  graph.outputs.pop_back();
  maker.layer(graph, graph.op(0).outputs[0], ir::OpKind::conv_2d, 3, 1, 0.05F);
  EXPECT_EQ(depthwise_reader(graph, 0), std::nullopt);
}

// ---- whole networks ----

TEST(Quantize, OneScaleIsWrittenAsOneAndNothingElseChanges) {
  Maker maker(11);
  const ir::Graph model = maker.network();
  const auto seen = maker.several(model, 4), held = maker.several(model, 2);
  const Quantized made = made_of(model, seen, held, with(1));
  ASSERT_EQ(made.layers.size(), 3U);
  for (size_t i = 0; i < made.graph.ops.size(); ++i) {
    const ir::Op& op = made.graph.ops[i];
    ASSERT_EQ(op.inputs.size(), 3U);  // the one without bias got one
    EXPECT_EQ(made.graph.tensor(op.inputs[1]).quant.scales.size(), 1U);
    EXPECT_EQ(made.graph.tensor(op.inputs[2]).quant.scales.size(), 1U);
    EXPECT_EQ(op.outputs, model.ops[i].outputs);
    EXPECT_EQ(op.attrs, model.ops[i].attrs);
    EXPECT_GT(made.layers[i].scales_before, 1U);
    EXPECT_EQ(made.layers[i].scales, 1U);
    EXPECT_GT(made.layers[i].held.values, 0U);
  }
  EXPECT_TRUE(layers_of(made.graph).empty());
  EXPECT_EQ(made.graph.tensors.size(), model.tensors.size() + 6) << "filters and biases, and nothing that nobody reads";
  EXPECT_GT(made.layers[0].headroom, 1.01);
  // Repeating it changes nothing.
  const Quantized again = made_of(made.graph, seen, held, with(1));
  EXPECT_TRUE(again.layers.empty());
  EXPECT_EQ(ir::print(again.graph), ir::print(made.graph));
}

TEST(Quantize, MoreScalesOnlyWhileTheErrorIsLarger) {
  Maker maker(13, 2000);
  const ir::Graph model = maker.network();
  const auto seen = maker.several(model, 4);
  size_t before = 0;
  for (const double error : {1e9, 0.02, 0.0}) {
    size_t scales = 0;
    for (const Layer& layer : made_of(model, seen, {}, with(4, error)).layers) {
      EXPECT_TRUE(layer.scales > 1 || layer.seen.rms() <= error) << layer.scales << " of rms " << layer.seen.rms();
      scales += layer.scales;
    }
    EXPECT_TRUE(error < 1e9 || scales == 3) << scales;
    EXPECT_GE(scales, before);
    before = scales;
  }
  EXPECT_GT(before, 6U);
}

TEST(Quantize, WhatIsHeldBackDecidesNothing) {
  Maker maker(17);
  const ir::Graph model = maker.network();
  const auto seen = maker.several(model, 4), held = maker.several(model, 3), other = maker.several(model, 4);
  const std::string one = ir::print(made_of(model, seen, held, with(2, 0.1)).graph);
  EXPECT_EQ(one, ir::print(made_of(model, seen, other, with(2, 0.1)).graph));
  EXPECT_EQ(one, ir::print(made_of(model, seen, {}, with(2, 0.1)).graph));
  EXPECT_NE(one, ir::print(made_of(model, other, held, with(2, 0.1)).graph));
}

TEST(Quantize, LayersThatAreLeftOutStayAsTheyAre) {
  Maker maker(19);
  const ir::Graph model = maker.network();
  const auto seen = maker.several(model, 3);
  const Quantized none = made_of(model, seen, {}, with(0));
  EXPECT_TRUE(none.layers.empty());
  EXPECT_EQ(ir::print(none.graph), ir::print(model));
  Options options{.scales_max = [](ir::OpId op) { return op == 1 ? 0 : 1; }};
  const Quantized some = made_of(model, seen, {}, options);
  EXPECT_EQ(some.layers.size(), 2U);
  EXPECT_EQ(some.graph.op(1).inputs, model.op(1).inputs);
  EXPECT_EQ(some.layers[0].headroom, 1);
}

TEST(Quantize, ModelsWithOneScaleHaveNothingToDo) {
  Maker maker(23);
  ir::Graph model = maker.network();
  for (const ir::Op& op : model.ops) std::ranges::fill(model.tensor(op.inputs[1]).quant.scales, 0.01F);
  EXPECT_TRUE(layers_of(model).empty());
  const Quantized made = made_of(model, maker.several(model, 2), {}, with(1));
  EXPECT_EQ(ir::print(made.graph), ir::print(model));
}

TEST(Quantize, WhatIsHeldBackComesOutNearToo) {
  for (uint32_t seed = 100; seed < 110; ++seed) {
    Maker maker(seed, 50);
    const ir::Graph model = maker.network();
    const auto seen = maker.several(model, 4), held = maker.several(model, 2);
    const Quantized made = made_of(model, seen, held, with(16, 0.25));
    for (const Layer& layer : made.layers) EXPECT_LT(layer.held.rms(), 2) << "seed " << seed << " op " << layer.op;
  }
}

}  // namespace
}  // namespace skillet::quantize
