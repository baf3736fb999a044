// Nodes of a unit, and the scales of QLinear... nodes.
#include "frontend/onnx/units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/capability.h"
#include "frontend/onnx/testing/qdq_net.h"
#include "graph/ref/ref.h"

namespace skillet::onnx {
namespace {

using ir::DType;

// A DequantizeLinear with two readers stays with the host: a unit that contained it would take the other reader's
// input.
TEST(Units, WhatTwoNodesReadIsPartOfNeither) {
  for (const bool is_shared : {false, true}) {
    QdqNet net(DType::uint8);
    const std::vector<int64_t> dims = {1, 4, 5, 5};
    const ir::Quant quant{{0.05F}, {120}};
    const int x = net.value(DType::uint8, dims);
    const int first = net.dequantized(x, quant), second = is_shared ? first : net.dequantized(x, quant);
    for (const int from : {first, second}) {
      const int y = net.value(DType::float32, dims);
      net.node("Sigmoid", {from}, {y});
      net.model.values[static_cast<size_t>(net.quantized(y, {{1.0F / 256}, {0}}))].is_output = true;
    }
    const std::vector<Unit> units = units_of(net.model, links_of(net.model));
    ASSERT_EQ(units.size(), 2U);
    for (const Unit& unit : units) {
      EXPECT_EQ(unit.refusal, "");
      EXPECT_EQ(unit.inputs[0].value, x);
      const auto dequantizes = [&](int node) { return is_dequantize(net.model.node(node)); };
      EXPECT_EQ(std::ranges::count_if(unit.nodes, dequantizes), is_shared ? 0 : 1);
    }
  }
}

// The refusal of a net's only unit: `op` on a dequantized input of shape `dims`, with output shape `to`.
struct One {
  QdqNet net{DType::uint8};
  int x, y;
  One(const std::vector<int64_t>& dims, const std::vector<int64_t>& to)
      : x(net.dequantized(net.value(DType::uint8, dims), {{0.05F}, {120}})), y(net.value(DType::float32, to)) {}
  std::string refusal() {
    net.model.values[static_cast<size_t>(net.quantized(y, {{0.05F}, {120}}))].is_output = true;
    const auto whole = whole_of(net.model, links_of(net.model));
    EXPECT_TRUE(whole.ok()) << whole.error().message;
    return whole.ok() ? whole->units.at(0).refusal : "";
  }
};

// An activation belongs to a unit only if a QuantizeLinear follows it.
TEST(Units, EndWhereSomethingQuantizes) {
  for (const char* activation : {"Relu", "Clip"}) {
    for (const bool is_quantized : {true, false}) {
      const std::vector<int64_t> dims = {1, 4, 5, 5};
      QdqNet net(DType::uint8);
      const int x = net.dequantized(net.value(DType::uint8, dims), {{0.05F}, {120}});
      const int y = net.value(DType::float32, dims), z = net.value(DType::float32, dims);
      net.node("MaxPool", {x}, {y}).attributes["kernel_shape"].ints = {1, 1};
      net.node(activation, {y}, {z});
      int end = z;
      if (!is_quantized) net.node("Erf", {z}, {end = net.value(DType::float32, dims)});
      net.model.values[static_cast<size_t>(net.quantized(end, {{0.05F}, {120}}))].is_output = true;
      const std::vector<Unit> units = units_of(net.model, links_of(net.model));
      ASSERT_FALSE(units.empty());
      EXPECT_EQ(units[0].refusal,
                is_quantized ? "" : fmt::format("its output '{}' is not quantized", net.model.value(y).name));
    }
  }
}

TEST(Units, HaveAsManyZeroPointsAsScales) {
  for (const size_t count : {size_t{1}, size_t{2}}) {
    One one({1, 2, 4, 4}, {1, 2, 4, 4});
    const int zeros = one.net.constant(DType::uint8, {static_cast<int64_t>(count)}, Bytes(count, 120));
    for (Node& node : one.net.model.nodes) node.inputs[2] = zeros;
    one.net.node("Sigmoid", {one.x}, {one.y});
    EXPECT_EQ(one.refusal(), count == 1 ? "" : "its zero point is not a constant that fits its scale");
  }
}

TEST(Units, OfSixteenBitsSaySo) {
  for (const DType dtype : {DType::int16, DType::uint16}) {
    for (const bool has_zero : {true, false}) {
      One one({1, 2, 4, 4}, {1, 2, 4, 4});
      one.net.model.values[0].dtype = dtype;
      const int zero = one.net.constant(dtype, {}, Bytes(2, 0));
      Node& node = one.net.model.nodes[0];
      if (has_zero) node.inputs[2] = zero;
      if (!has_zero) node.inputs.resize(2);
      one.net.node("Sigmoid", {one.x}, {one.y});
      EXPECT_EQ(one.refusal(), fmt::format("{}: only 8 bits are taken", ir::dtype_name(dtype)));
    }
  }
}

TEST(Units, HaveScalesAlongAnAxisThatCountsFromTheEndToo) {
  for (const int axis : {0, 1, -4, -3}) {
    QdqNet net(DType::int8);
    const int x = net.dequantized(net.value(DType::int8, {1, 4, 3, 3}), {{0.05F}, {0}});
    const ir::Quant quant{{0.1F, 0.2F, 0.3F, 0.4F}, {0, 0, 0, 0}, axis};
    const int weights = net.dequantized(net.constant(DType::int8, {4, 4, 1, 1}, net.random(16)), quant);
    const int y = net.value(DType::float32, {1, 4, 3, 3});
    net.node("Conv", {x, weights}, {y});
    net.quantized(y, {{0.1F}, {0}});
    const auto whole = whole_of(net.model, links_of(net.model));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    const bool is_first = axis == 0 || axis == -4;
    EXPECT_EQ(whole->units[0].refusal, is_first ? "" : "its weights have scales along dimension 1, not 0") << axis;
  }
}

TEST(Units, JoinIntegersOfOneScale) {
  for (const float scale : {0.05F, 0.06F}) {
    QdqNet net(DType::uint8);
    std::vector<int> parts;
    for (const float of : {0.05F, scale})
      parts.push_back(net.quantized(net.value(DType::float32, {1, 2, 3, 3}), {{of}, {9}}));
    const int y = net.value(DType::uint8, {1, 4, 3, 3});
    net.node("Concat", parts, {y}).attributes["axis"].ints = {1};
    net.model.values[static_cast<size_t>(y)].is_output = true;
    const std::vector<Unit> units = units_of(net.model, links_of(net.model));
    ASSERT_EQ(units.size(), 1U);
    EXPECT_EQ(units[0].refusal, scale == 0.05F ? "" : "it concatenates integers with different scales unchanged");
  }
}

TEST(Units, AxesCountFromTheEndToo) {
  for (const std::vector<int64_t>& axes : std::vector<std::vector<int64_t>>{{2, 3}, {-1, -2}, {-1, 2}, {-1, -3}}) {
    One one({1, 4, 5, 5}, {1, 4, 1, 1});
    one.net.node("ReduceMean", {one.x}, {one.y}).attributes["axes"].ints = axes;
    EXPECT_EQ(one.refusal().empty(), axes.back() != -3) << axes[0] << ' ' << axes[1];
  }
}

TEST(Units, ResizeByWhatTheSizesSay) {
  struct Row {
    std::vector<float> scales;
    std::vector<int64_t> to;
    const char *rule, *nearest;
    bool is_taken;
  };
  for (const Row& row : {Row{{1, 1, 2, 2}, {1, 4, 10, 10}, "asymmetric", "floor", true},
                         Row{{1, 1, 2, 2}, {1, 4, 10, 10}, "half_pixel", "round_prefer_floor", true},
                         Row{{1, 1, 2, 2}, {1, 4, 10, 10}, "half_pixel", "ceil", false},
                         Row{{1, 1, 2, 2}, {1, 4, 10, 10}, "half_pixel", "floor", false},
                         Row{{1, 1, 2.15F, 2}, {1, 4, 10, 10}, "asymmetric", "floor", false}}) {
    One one({1, 4, 5, 5}, row.to);
    Node& node = one.net.node("Resize", {one.x, kNone, one.net.list(DType::float32, row.scales)}, {one.y});
    node.attributes["mode"].text = "nearest";
    node.attributes["coordinate_transformation_mode"].text = row.rule;
    node.attributes["nearest_mode"].text = row.nearest;
    EXPECT_EQ(one.refusal().empty(), row.is_taken) << row.rule << ' ' << row.nearest;
  }
}

// A QGemm has one scale for each output: along the first dimension of transposed weights, else along the last.
TEST(Units, AQGemmHasItsScalesAlongItsOutputs) {
  constexpr int kDepth = 7, kOut = 5;
  for (const bool transposed : {false, true}) {
    QdqNet net(DType::int8);
    const ir::Quant in{{0.05F}, {3}}, out{{0.1F}, {-4}};
    ir::Quant by;
    for (int c = 0; c < kOut; ++c) {
      by.scales.push_back(0.002F * static_cast<float>(1 + 3 * c));
      by.zero_points.push_back(0);
    }
    const Bytes weights = net.random(kDepth * kOut), input = net.random(kDepth);
    const std::vector<int64_t> dims = {transposed ? kOut : kDepth, transposed ? kDepth : kOut};
    std::vector<int> inputs;
    const auto add = [&](int value, const ir::Quant& quant) {
      const std::vector<int> more = net.quant(quant, DType::int8);
      inputs.insert(inputs.end(), {value, more[0], more[1]});
    };
    add(net.value(DType::int8, {1, kDepth}), in);
    add(net.constant(DType::int8, dims, weights), by);
    const std::vector<int> steps = net.quant(out, DType::int8);
    inputs.insert(inputs.end(), {kNone, steps[0], steps[1]});
    const int y = net.value(DType::int8, {1, kOut});
    Node& node = net.node("QGemm", inputs, {y});
    node.domain = "com.microsoft";
    node.attributes["transB"].ints = {transposed ? 1 : 0};
    net.model.values[static_cast<size_t>(y)].is_output = true;
    const auto whole = whole_of(net.model, links_of(net.model));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    ASSERT_EQ(whole->units[0].refusal, "");
    auto made = ref::Interpreter::create(whole->graph);
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::ranges::copy(input, made->tensor(whole->inputs[0].tensor).begin());
    ASSERT_TRUE(made->run().ok());
    for (int o = 0; o < kOut; ++o) {
      double sum = 0;
      for (int i = 0; i < kDepth; ++i)
        sum += (static_cast<int8_t>(input[static_cast<size_t>(i)]) - 3) *
               double(static_cast<int8_t>(weights[static_cast<size_t>(transposed ? o * kDepth + i : i * kOut + o)]));
      const double real = sum * in.scale() * by.scales[static_cast<size_t>(o)];
      const double want = std::clamp<double>(std::nearbyint(real / out.scale()) - 4, -128, 127);
      EXPECT_NEAR(static_cast<int8_t>(made->tensor(whole->outputs[0].tensor)[static_cast<size_t>(o)]), want, 1) << o;
    }
  }
}

// Refusals use ONNX's names of operations, not ours.
TEST(Units, AreRefusedInTheWordsOfOnnx) {
  const auto target = runtime::open_target("sim:rk3588");
  if (!target.ok()) GTEST_SKIP() << "no simulated chip";
  QdqNet net(DType::uint8);
  const std::vector<int64_t> dims = {1, 10};
  const int y = net.value(DType::float32, dims);
  net.node("Softmax", {net.dequantized(net.value(DType::uint8, dims), {{0.05F}, {120}})}, {y}).attributes["axis"].ints =
      {1};
  net.model.values[static_cast<size_t>(net.quantized(y, {{1.0F / 256}, {0}}))].is_output = true;
  const auto made = capability_of(net.model, *target, {});
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_EQ(made->told.refusals.size(), 1U);
  EXPECT_EQ(made->told.refusals[0], "Softmax 'n': no known program of the NPU computes Softmax on 8-bit tensors");
}

// One step of the average is more than one step of a finer output, which is rounded again.
TEST(Units, WhatTheChipMayBeTwoStepsOffIsLeft) {
  const auto target = runtime::open_target("sim:rk3588");
  if (!target.ok()) GTEST_SKIP() << "no simulated chip";
  for (const auto& [step, refusal] : {std::pair(0.0668F, ""), {0.04F, "it may be 2 steps off"}}) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 8, 6, 6}), {{0.05F}, {120}});
    const int y = net.value(DType::float32, {1, 8, 6, 6});
    Node& node = net.node("AveragePool", {x}, {y});
    node.attributes["kernel_shape"].ints = {3, 3};
    node.attributes["pads"].ints = {1, 1, 1, 1};
    net.model.values[static_cast<size_t>(net.quantized(y, {{step}, {110}}))].is_output = true;
    host::Options options;
    options.session.partition = compile::PartitionBy::all;
    const auto made = capability_of(net.model, *target, options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    const std::string told = made->told.refusals.empty() ? "" : made->told.refusals[0];
    EXPECT_EQ(told.find("steps off") != told.npos, *refusal != '\0') << told;
    EXPECT_NE(told.find(refusal), told.npos) << told;
  }
}

// ONNX Runtime would insert a QuantizeLinear between such a node and a saved part that quantizes.
TEST(Units, OfSavedPartsLeaveWhatQuantizesBehindTheHostsNodes) {
  const auto target = runtime::open_target("sim:rk3588");
  if (!target.ok()) GTEST_SKIP() << "no simulated chip";
  for (const bool saves : {false, true}) {
    for (const bool is_behind : {false, true}) {
      QdqNet net(DType::uint8);
      const std::vector<int64_t> dims = {1, 8, 6, 6};
      const ir::Quant quant{{0.05F}, {120}};
      int real = net.value(DType::float32, dims);
      if (is_behind) {
        const int made = net.value(DType::float32, dims);
        net.node("Odd", {real}, {made});
        real = made;
      }
      const int x = net.dequantized(net.quantized(real, quant), quant), y = net.value(DType::float32, dims);
      const int weights = net.constant(DType::uint8, {8, 8, 1, 1}, net.random(64));
      net.node("Conv", {x, net.dequantized(weights, {{0.01F}, {128}})}, {y});
      net.model.values[static_cast<size_t>(net.quantized(y, {{0.1F}, {110}}))].is_output = true;
      host::Options options;
      options.session.partition = compile::PartitionBy::all;
      const auto made = capability_of(net.model, *target, options, saves);
      ASSERT_TRUE(made.ok()) << made.error().message;
      ASSERT_EQ(made->parts.size(), 1U) << made->told.such_as;
      EXPECT_EQ(made->parts[0]->inputs()[0].is_float, !(saves && is_behind));
    }
  }
}

}  // namespace
}  // namespace skillet::onnx
