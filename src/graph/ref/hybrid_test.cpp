// Float operations with int8 weights. Where quantizing the input is exact, they equal the float operation with the same
// weights; where it is not, the tests contain the expected values.
#include "graph/ref/hybrid.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "graph/ref/ref.h"

namespace skillet::ref {
namespace {

using ir::DType;
using ir::TensorId;

struct Case {
  const char* name;
  ir::OpKind kind;
  ir::Attrs attrs;
  ir::Shape input, filter;  // batches, or rows
  int32_t channel_axis;
  bool per_channel, symmetric, has_bias = true;
};

std::vector<Case> cases() {
  const ir::ConvAttrs same, valid{.padding = ir::Padding::valid, .stride_h = 2, .stride_w = 1};
  const ir::ConvAttrs dilated{.dilation_h = 2, .dilation_w = 2, .activation = ir::Activation::relu6};
  ir::ConvAttrs twice = same;
  twice.depth_multiplier = 2;
  const ir::ConvAttrs halved{.stride_h = 2, .stride_w = 2, .activation = ir::Activation::relu};
  const auto conv = ir::OpKind::conv_2d, depthwise = ir::OpKind::depthwise_conv_2d, full = ir::OpKind::fully_connected,
             transposed = ir::OpKind::transpose_conv;
  return {
      {"3x3, one scale", conv, same, {2, 5, 4, 3}, {6, 3, 3, 3}, 0, false, true},
      {"3x3, a scale per channel", conv, same, {2, 5, 4, 3}, {5, 3, 3, 3}, 0, true, false},
      {"strided, no bias", conv, valid, {1, 7, 6, 2}, {4, 3, 2, 2}, 0, true, false, false},
      {"dilated, RELU6", conv, dilated, {1, 8, 8, 2}, {3, 3, 3, 2}, 0, false, true},
      {"in groups, one scale", conv, same, {2, 4, 4, 6}, {4, 3, 3, 3}, 0, false, false},
      {"wide", conv, valid, {1, 3, 300, 1}, {3, 3, 3, 1}, 0, true, false},
      {"depthwise", depthwise, same, {2, 5, 6, 7}, {1, 3, 3, 7}, 3, true, false},
      {"depthwise, one scale, strided", depthwise, valid, {1, 9, 6, 4}, {1, 3, 3, 4}, 3, false, false},
      {"depthwise, two for each", depthwise, twice, {2, 4, 5, 3}, {1, 3, 2, 6}, 3, true, false},
      {"depthwise, dilated", depthwise, dilated, {1, 9, 8, 5}, {1, 3, 3, 5}, 3, true, false},
      {"transposed", transposed, halved, {2, 4, 3, 5}, {6, 3, 3, 5}, 0, true, false},
      {"transposed, one scale", transposed, halved, {1, 2, 5, 40}, {17, 2, 4, 40}, 0, false, false, false},
      {"rows", full, ir::FullyConnectedAttrs{}, {3, 17}, {5, 17}, 0, false, true},
      {"rows, a scale per channel", full, ir::FullyConnectedAttrs{}, {3, 17}, {5, 17}, 0, true, true, false},
      {"rows of two ends", full, ir::FullyConnectedAttrs{.asymmetric_inputs = true}, {4, 9}, {7, 9}, 0, true, false},
  };
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto* from = reinterpret_cast<const uint8_t*>(values.data());
  return {from, from + values.size() * sizeof(T)};
}

// Steps of a quarter. Each image or row contains both ends, so that its bytes are the values.
std::vector<float> exact_input(const Case& one, std::mt19937& random) {
  const auto images = static_cast<size_t>(one.input.dims[0]);
  const size_t count = static_cast<size_t>(one.input.elems()) / images;
  std::vector<float> values;
  for (size_t image = 0; image < images; ++image) {
    const int least = one.symmetric ? -127 : -static_cast<int>(random() % 256), steps = one.symmetric ? 254 : 255;
    const size_t at = random() % (count - 1);
    for (size_t i = 0; i < count; ++i) {
      int step = static_cast<int>(random() % static_cast<unsigned>(steps + 1));
      if (i == at) step = 0;
      if (i == at + 1) step = steps;
      values.push_back(static_cast<float>(least + step) / 4);
    }
  }
  return values;
}

// The operation with weights as bytes, or with the floats that they represent; the weights and the bias are random.
Bytes result(const Case& one, bool hybrid, const std::vector<float>& input, uint32_t seed) {
  std::mt19937 random(seed);
  const auto channels = static_cast<size_t>(one.filter.dims[static_cast<size_t>(one.channel_axis)]);
  std::vector<float> scales(one.per_channel ? channels : 1);
  for (float& scale : scales) scale = std::ldexp(1.0F, -static_cast<int>(random() % 5));
  if (one.per_channel) scales[1] = scales[0] / 2;  // not equal by chance
  const bool is_last = one.channel_axis != 0;
  const auto count = static_cast<size_t>(one.filter.elems());
  std::vector<int8_t> weights;
  std::vector<float> floats;
  for (size_t i = 0; i < count; ++i) {
    const size_t channel = is_last ? i % channels : i / (count / channels);
    weights.push_back(static_cast<int8_t>(static_cast<int>(random() % 255) - 127));
    floats.push_back(static_cast<float>(weights.back()) * scales[one.per_channel ? channel : 0]);
  }
  std::vector<float> bias(channels);
  for (float& value : bias) value = static_cast<float>(static_cast<int>(random() % 64) - 32) / 8;

  ir::Graph graph;
  ir::Op op{.kind = one.kind, .attrs = one.attrs, .inputs = {}, .outputs = {}};
  const TensorId in = graph.add_tensor({.name = "in", .dtype = DType::float32, .shape = one.input});
  ir::Tensor filter{.name = "w", .dtype = hybrid ? DType::int8 : DType::float32, .shape = one.filter};
  if (hybrid) {
    filter.quant = {.scales = scales, .zero_points = std::vector<int32_t>(scales.size(), 0)};
    if (one.per_channel) filter.quant.axis = one.channel_axis;
  }
  ir::set_constant(filter, hybrid ? bytes_of(weights) : bytes_of(floats));
  ir::Tensor added{.name = "b", .dtype = DType::float32, .shape = {static_cast<int32_t>(channels)}};
  ir::set_constant(added, bytes_of(bias));
  op.inputs = {in, graph.add_tensor(std::move(filter)),
               one.has_bias ? graph.add_tensor(std::move(added)) : ir::kNoTensor};
  if (one.kind == ir::OpKind::transpose_conv) {
    ir::Tensor shape{.name = "s", .dtype = DType::int32, .shape = {4}};
    ir::set_constant(shape, bytes_of(std::vector<int32_t>{one.input[0], 2 * one.input[1], 2 * one.input[2],
                                                          static_cast<int32_t>(channels)}));
    op.inputs = {graph.add_tensor(std::move(shape)), op.inputs[1], in, op.inputs[2]};
  }
  op.outputs = {graph.add_tensor({.name = "out", .dtype = DType::float32, .shape = {1}})};
  graph.inputs = {in};
  graph.outputs = op.outputs;
  graph.add_op(std::move(op));
  if (const auto done = ir::infer_shapes(graph); !done.ok()) {
    ADD_FAILURE() << one.name << ": " << done.error().message;
    return {};
  }
  auto cpu = Interpreter::create(graph);
  if (!cpu.ok()) {
    ADD_FAILURE() << one.name << ": " << cpu.error().message;
    return {};
  }
  const Bytes bytes = bytes_of(input);
  std::ranges::copy(bytes, cpu->tensor(in).begin());
  EXPECT_TRUE(cpu->run().ok());
  const auto out = cpu->tensor(graph.outputs[0]);
  return {out.begin(), out.end()};
}

TEST(Hybrid, IsTheFloatOperationWhereNothingIsLost) {
  uint32_t seed = 1;
  for (const Case& one : cases()) {
    for (int round = 0; round < 20; ++round, ++seed) {
      std::mt19937 random(seed);
      const std::vector<float> input = exact_input(one, random);
      ASSERT_EQ(result(one, true, input, seed), result(one, false, input, seed)) << one.name << ", seed " << seed;
    }
  }
}

TEST(Hybrid, QuantizesAnInputAsItsRangeIs) {
  const struct {
    const char* what;
    std::vector<float> in;
    bool asymmetric;
    float scale;
    int32_t zero_point;
    std::vector<int8_t> bytes;
  } kRows[] = {
      {"halves go away from zero", {127, 0.5F, -0.5F, 1.5F, -1.5F, 0.49F}, false, 1, 0, {127, 1, -1, 2, -2, 0}},
      {"the farther end counts", {-254, 254 - 1, 3}, false, 2, 0, {-127, 127, 2}},
      {"nothing", {0, 0}, false, 1, 0, {0, 0}},
      {"both ends", {-1, 254, 0, 126.5F}, true, 1, -127, {-128, 127, -127, -1}},
      {"zero is in the range of what is above", {255, 51}, true, 1, -128, {127, -77}},
      {"and of what is below", {-255, -51}, true, 1, 127, {-128, 76}},
      {"nothing of two ends", {0, 0}, true, 1, 0, {0, 0}},
  };
  for (const auto& row : kRows) {
    std::vector<int8_t> bytes(row.in.size());
    const InputQuant got = quantize_input(row.in.data(), row.in.size(), row.asymmetric, bytes.data());
    EXPECT_EQ(got.scale, row.scale) << row.what;
    EXPECT_EQ(got.zero_point, row.zero_point) << row.what;
    EXPECT_EQ(bytes, row.bytes) << row.what;
  }
}

TEST(Hybrid, WhatIsNotFiniteMakesItsImageNoNumber) {
  for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Case rows = {"rows", ir::OpKind::fully_connected, ir::FullyConnectedAttrs{}, {2, 3}, {2, 3}, 0, false, true};
    const Bytes out = result(rows, true, {1, odd, 2, 127, 3, 4}, 7), want = result(rows, true, {0, 0, 0, 127, 3, 4}, 7);
    ASSERT_EQ(out.size(), want.size());
    for (size_t i = 0; i < out.size() / 4; ++i) {
      const auto value = load_le<float>(out.data() + i * 4);
      if (i < 2) {
        EXPECT_TRUE(std::isnan(value)) << i;
      } else {
        EXPECT_EQ(value, load_le<float>(want.data() + i * 4)) << i;
      }
    }
  }
}

}  // namespace
}  // namespace skillet::ref
