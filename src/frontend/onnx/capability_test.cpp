// Converts quantized models with channels second to graphs with channels last: the results are equal, and no operation
// only moves values. Invalid models are refused.
#include "frontend/onnx/capability.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <sstream>

#include "frontend/onnx/testing/qdq_net.h"
#include "graph/ref/ref.h"

namespace skillet::onnx {
namespace {

using ir::DType;

int stored(DType type, uint8_t byte) { return type == DType::int8 ? static_cast<int8_t>(byte) : byte; }

// Runs the graph on the CPU; input and outputs have the host's layout.
std::vector<Bytes> run(const Whole& whole, const Model& model, std::span<const uint8_t> input) {
  auto made = ref::Interpreter::create(whole.graph);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  if (!made.ok()) return {};
  const auto port = [&](const Edge& edge) {
    return Port{.n = edge.n, .c = edge.c, .hw = edge.hw, .flips = model.value(edge.value).dtype != whole.type};
  };
  for (const Edge& edge : whole.inputs) copy_in(port(edge), input.data(), made->tensor(edge.tensor));
  EXPECT_TRUE(made->run().ok());
  std::vector<Bytes> outputs;
  for (const Edge& edge : whole.outputs) {
    outputs.emplace_back(made->tensor(edge.tensor).size());
    copy_out(port(edge), made->tensor(edge.tensor), outputs.back().data());
  }
  return outputs;
}

bool has(const ir::Graph& graph, ir::OpKind kind) {
  return std::ranges::any_of(graph.ops, [&](const ir::Op& op) { return op.kind == kind; });
}

struct ConvRow {
  const char* name;
  DType type, weights;
  int channels_in, channels_out, groups, kernel, stride, dilation;
  std::vector<int64_t> pads;  // top, left, bottom, right
  bool per_channel, has_bias, has_relu = false;
  int bias_step = 1;  // bias in steps of the sums
};

std::ostream& operator<<(std::ostream& out, const ConvRow& row) { return out << row.name; }

constexpr int kRows = 9, kColumns = 11;

// A convolution as ONNX defines it, computed in double.
struct Convolved {
  QdqNet net;
  Bytes input, expected;
  std::vector<int64_t> dims;

  explicit Convolved(const ConvRow& row) : net(row.type) {
    const int64_t group_in = row.channels_in / row.groups, k = row.kernel, extent = (k - 1) * row.dilation + 1;
    const int64_t h = (kRows + row.pads[0] + row.pads[2] - extent) / row.stride + 1;
    const int64_t w = (kColumns + row.pads[1] + row.pads[3] - extent) / row.stride + 1;
    dims = {1, row.channels_out, h, w};
    const int zero = row.type == DType::int8 ? 5 : 121;
    const ir::Quant in{{0.02F}, {zero}}, out{{0.11F}, {zero - 3}};
    ir::Quant by{{}, {}};
    for (int c = 0; c < (row.per_channel ? row.channels_out : 1); ++c) {
      by.scales.push_back(0.01F + 0.002F * static_cast<float>(c));
      by.zero_points.push_back(row.weights == DType::uint8 ? 128 : 0);
    }
    const Bytes weights = net.random(row.channels_out * group_in * k * k);
    input = net.random(int64_t{row.channels_in} * kRows * kColumns);
    const int x = net.value(row.type, {1, row.channels_in, kRows, kColumns});
    std::vector<int> inputs = {
        net.dequantized(x, in),
        net.dequantized(net.constant(row.weights, {row.channels_out, group_in, k, k}, weights), by)};
    std::vector<int32_t> bias(static_cast<size_t>(row.channels_out), 0);
    if (row.has_bias) {
      ir::Quant steps = by;
      for (float& one : steps.scales) one *= in.scale() * static_cast<float>(row.bias_step);
      std::ranges::fill(steps.zero_points, 0);
      for (int32_t& one : bias) one = static_cast<int32_t>(net.generator()() % 4000) - 2000;
      const int stored_bias = net.list(DType::int32, bias);
      const int scale = net.list(DType::float32, steps.scales, steps.scales.size() == 1);
      const int real = net.value(DType::float32, {row.channels_out});
      net.node("DequantizeLinear", {stored_bias, scale}, {real}).attributes["axis"].ints = {0};
      inputs.push_back(real);
    }
    int y = net.value(DType::float32, dims);
    Node& conv = net.node("Conv", inputs, {y});
    conv.attributes["group"].ints = {row.groups};
    conv.attributes["strides"].ints = {row.stride, row.stride};
    conv.attributes["dilations"].ints = {row.dilation, row.dilation};
    conv.attributes["pads"].ints = row.pads;
    if (row.has_relu) {
      const int before = y;
      y = net.value(DType::float32, dims);
      net.node("Relu", {before}, {y});
    }
    net.model.values[static_cast<size_t>(net.quantized(y, out))].is_output = true;
    compute(row, weights, bias, in, by, out);
  }

  void compute(const ConvRow& row, const Bytes& weights, const std::vector<int32_t>& bias, const ir::Quant& in,
               const ir::Quant& by, const ir::Quant& out) {
    const int64_t group_in = row.channels_in / row.groups, k = row.kernel;
    for (int64_t o = 0; o < dims[1]; ++o) {
      const auto channel = static_cast<size_t>(row.per_channel ? o : 0);
      const int64_t first = o / (row.channels_out / row.groups) * group_in;
      for (int64_t at = 0; at < dims[2] * dims[3]; ++at) {
        double sum = bias[static_cast<size_t>(o)] * static_cast<double>(row.bias_step);
        for (int64_t tap = 0; tap < group_in * k * k; ++tap) {
          const int64_t i = tap / (k * k), y = at / dims[3] * row.stride - row.pads[0] + tap / k % k * row.dilation;
          const int64_t x = at % dims[3] * row.stride - row.pads[1] + tap % k * row.dilation;
          if (y < 0 || y >= kRows || x < 0 || x >= kColumns) continue;
          const auto from = static_cast<size_t>(((first + i) * kRows + y) * kColumns + x);
          sum += (stored(row.type, input[from]) - in.zero_point()) *
                 double(stored(row.weights, weights[static_cast<size_t>(o * group_in * k * k + tap)]) -
                        by.zero_points[channel]);
        }
        double real = sum * in.scale() * by.scales[channel];
        if (row.has_relu) real = std::max(real, 0.0);
        const int least = row.type == DType::int8 ? -128 : 0;
        const double step = std::nearbyint(real / out.scale()) + out.zero_point();
        expected.push_back(static_cast<uint8_t>(static_cast<int>(std::clamp<double>(step, least, least + 255))));
      }
    }
  }
};

class Conv : public testing::TestWithParam<ConvRow> {};

TEST_P(Conv, HasChannelsLastAndTheSameNumbers) {
  const Convolved made(GetParam());
  const Links links = links_of(made.net.model);
  const auto whole = whole_of(made.net.model, links);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  ASSERT_EQ(whole->units.size(), 1u);
  ASSERT_EQ(whole->units[0].refusal, "");
  EXPECT_EQ(whole->units[0].nodes.size(), made.net.model.nodes.size());
  EXPECT_FALSE(has(whole->graph, ir::OpKind::transpose));
  ASSERT_EQ(whole->outputs.size(), 1u);
  const std::vector<Bytes> outputs = run(*whole, made.net.model, made.input);
  ASSERT_EQ(outputs.size(), 1u);
  ASSERT_EQ(outputs[0].size(), made.expected.size());
  int most = 0;
  for (size_t i = 0; i < made.expected.size(); ++i)
    most = std::max(most, std::abs(stored(GetParam().type, outputs[0][i]) - stored(GetParam().type, made.expected[i])));
  EXPECT_LE(most, 1);
  EXPECT_GT(std::set(made.expected.begin(), made.expected.end()).size(), 20u) << "the data says nothing";
}

INSTANTIATE_TEST_SUITE_P(
    Onnx, Conv,
    testing::Values(ConvRow{"same", DType::uint8, DType::uint8, 3, 8, 1, 3, 1, 1, {1, 1, 1, 1}, false, true},
                    ConvRow{"strided", DType::uint8, DType::int8, 4, 6, 1, 3, 2, 1, {1, 1, 1, 1}, false, true},
                    ConvRow{"one_sided", DType::int8, DType::int8, 4, 6, 1, 3, 2, 1, {0, 2, 1, 0}, true, true},
                    ConvRow{"per_channel", DType::uint8, DType::int8, 4, 6, 1, 3, 1, 1, {0, 0, 0, 0}, true, false},
                    ConvRow{"depthwise", DType::int8, DType::int8, 6, 6, 6, 3, 1, 1, {1, 1, 1, 1}, true, true},
                    ConvRow{"multiplier", DType::uint8, DType::uint8, 3, 9, 3, 3, 1, 1, {1, 1, 1, 1}, false, true},
                    ConvRow{"grouped", DType::int8, DType::int8, 6, 4, 2, 3, 1, 1, {1, 1, 1, 1}, false, true},
                    ConvRow{"dilated", DType::uint8, DType::uint8, 3, 5, 1, 3, 1, 2, {2, 2, 2, 2}, false, true},
                    ConvRow{"bias", DType::uint8, DType::int8, 4, 6, 1, 3, 1, 1, {0, 0, 0, 0}, true, true, false, 5},
                    ConvRow{"relu", DType::int8, DType::int8, 3, 5, 1, 1, 1, 1, {0, 0, 0, 0}, false, true, true}),
    [](const auto& one) { return one.param.name; });

// Flattened images keep their order; the weights are permuted instead.
TEST(Gemm, ReadsImagesAsTheyLie) {
  for (const bool transposed : {false, true}) {
    QdqNet net(DType::uint8);
    constexpr int kC = 5, kHw = 6, kOut = 4;
    const ir::Quant in{{0.05F}, {100}}, by{{0.03F}, {0}}, out{{0.2F}, {90}};
    const int x = net.value(DType::uint8, {1, kC, 2, 3});
    // A pool, so that channels are last.
    const int pooled = net.value(DType::float32, {1, kC, 2, 3});
    Node& pool = net.node("MaxPool", {net.dequantized(x, in)}, {pooled});
    pool.attributes["kernel_shape"].ints = {1, 1};
    const int flat = net.value(DType::float32, {1, kC * kHw});
    net.node("Flatten", {net.dequantized(net.quantized(pooled, in), in)}, {flat});
    const int rows = net.dequantized(net.quantized(flat, in), in);
    const Bytes weights = net.random(kC * kHw * kOut);
    const std::vector<int64_t> dims =
        transposed ? std::vector<int64_t>{kOut, kC * kHw} : std::vector<int64_t>{kC * kHw, kOut};
    const int real = net.value(DType::float32, {1, kOut});
    Node& gemm = net.node("Gemm", {rows, net.dequantized(net.constant(DType::int8, dims, weights), by)}, {real});
    gemm.attributes["transB"].ints = {transposed ? 1 : 0};
    net.model.values[static_cast<size_t>(net.quantized(real, out))].is_output = true;
    const auto whole = whole_of(net.model, links_of(net.model));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    for (const Unit& unit : whole->units) EXPECT_EQ(unit.refusal, "");
    EXPECT_FALSE(has(whole->graph, ir::OpKind::transpose));
    const Bytes input = net.random(kC * kHw);
    const std::vector<Bytes> outputs = run(*whole, net.model, input);
    ASSERT_EQ(outputs.size(), 1u);
    for (int o = 0; o < kOut; ++o) {
      double sum = 0;
      for (int i = 0; i < kC * kHw; ++i) {
        const uint8_t weight = weights[static_cast<size_t>(transposed ? o * kC * kHw + i : i * kOut + o)];
        sum += (input[static_cast<size_t>(i)] - 100) * double(static_cast<int8_t>(weight));
      }
      const double want = std::clamp<double>(std::nearbyint(sum * in.scale() * by.scale() / out.scale()) + 90, 0, 255);
      EXPECT_NEAR(outputs[0][static_cast<size_t>(o)], want, 1) << o;
    }
  }
}

// The second image follows the first, for the host and for the session.
TEST(Port, PutsChannelsLastInEachImage) {
  const Port port{.n = 2, .c = 2, .hw = 2};
  const Bytes host = {1, 2, 3, 4, 5, 6, 7, 8};
  Bytes own(8), back(8);
  copy_in(port, host.data(), own);
  EXPECT_EQ(own, (Bytes{1, 3, 2, 4, 5, 7, 6, 8}));
  copy_out(port, own, back.data());
  EXPECT_EQ(back, host);
}

TEST(Port, QuantizesHalvesToEvenAndPutsChannelsLast) {
  Port port{.n = 1, .c = 2, .hw = 3, .is_float = true, .is_signed = true, .scale = 0.5F, .zero_point = 1};
  const std::vector<float> host = {0.25F, 0.75F, -0.25F, NAN, 1e9F, -1e9F};
  Bytes own(6);
  copy_in(port, host.data(), own);
  EXPECT_EQ(own, (Bytes{1, 128, 3, 127, 1, 128}));
  std::vector<float> back(6);
  copy_out(port, own, back.data());
  EXPECT_EQ(back, (std::vector<float>{0, 1, 0, -64.5F, 63, -64.5F}));
}

// Kernels that round to coarser steps than the output's: after both roundings the result must be less than two steps
// off.
TEST(Units, AreLeftWhereTheirResultIsRoundedToCoarserStepsFirst) {
  constexpr int64_t kChannels = 4;
  const ir::Quant in{{0.05F}, {120}};
  for (const char* op : {"AveragePool", "Resize", "Softmax"}) {
    const bool is_softmax = std::string_view(op) == "Softmax", is_resize = std::string_view(op) == "Resize";
    const int64_t rows = is_resize ? 10 : 5;
    for (const float step : is_softmax ? std::vector{0.01F, 0.001F} : std::vector{0.06F, 0.04F, 0.03F, 0.02F}) {
      QdqNet net(DType::uint8);
      const int x = net.dequantized(net.value(DType::uint8, {1, kChannels, 5, 5}), in);
      const int y = net.value(DType::float32, {1, kChannels, rows, rows});
      std::vector<int> inputs = {x};
      if (is_resize) inputs.insert(inputs.end(), {kNone, net.list(DType::float32, std::vector<float>{1, 1, 2, 2})});
      Node& node = net.node(op, inputs, {y});
      node.since = 13;
      node.attributes["kernel_shape"].ints = {3, 3};
      node.attributes["pads"].ints = {1, 1, 1, 1};
      node.attributes["axis"].ints = {1};
      node.attributes["mode"].text = "linear";
      net.model.values[static_cast<size_t>(net.quantized(y, {{step}, {110}}))].is_output = true;
      const auto whole = whole_of(net.model, links_of(net.model));
      ASSERT_TRUE(whole.ok()) << whole.error().message;
      ASSERT_EQ(whole->units.size(), 1u);
      const float ratio = (is_softmax ? 1.0F / 256 : in.scale()) / step;
      const bool is_finer = is_resize ? ratio > 1 : ratio >= 1.5F;
      const std::string want =
          is_finer ? fmt::format("its result would be rounded to {:g} before", is_softmax ? 1.0 / 256 : 0.05) : "";
      EXPECT_EQ(whole->units[0].refusal.substr(0, want.size()), want) << op;
      EXPECT_EQ(whole->units[0].refusal.empty(), !is_finer) << op << ": " << whole->units[0].refusal;
    }
  }
}

TEST(Units, OddModelsAreRefused) {
  const ConvRow row{"", DType::uint8, DType::int8, 4, 6, 2, 3, 1, 1, {1, 1, 1, 1}, false, true};
  std::mt19937 random(3);
  size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    Convolved made(row);
    Model& model = made.net.model;
    const auto pick = [&](size_t count) { return random() % count; };
    const auto odd = [&] { return std::array<int64_t, 6>{-1, 0, 3, 1 << 20, INT64_MIN, INT64_MAX}[pick(6)]; };
    Node& node = model.nodes[pick(model.nodes.size())];
    Value& value = model.values[pick(model.values.size())];
    switch (pick(6)) {
      case 0:
        node.attributes[std::array{"group", "pads", "strides", "axis"}[pick(4)]].ints = {odd(), odd(), odd(), odd()};
        break;
      case 1: value.dims = std::vector<int64_t>(pick(6), odd()); break;
      case 2: value.data = value.data.subspan(value.data.size() / 2); break;
      case 3: node.inputs.resize(pick(3)); break;
      case 4: value.dtype = std::array{DType::variant, DType::int64, DType::float32}[pick(3)]; break;
      default:
        node.op = std::array{"Gemm", "MatMul", "MaxPool", "Slice",     "Concat",      "Resize",     "Softmax",
                             "Pad",  "Split",  "Reshape", "Transpose", "AveragePool", "ReduceMean", "Clip"}[pick(14)];
    }
    const auto whole = whole_of(model, links_of(model));
    if (whole.ok())
      refused += static_cast<size_t>(
          std::ranges::count_if(whole->units, [](const Unit& unit) { return !unit.refusal.empty(); }));
  }
  EXPECT_GT(refused, 100u);
}

// A DequantizeLinear that only a convolution reads is in its unit, unless the host returns its result.
TEST(Units, WhatTheHostReturnsIsNoPartOfThem) {
  const ConvRow row{"", DType::uint8, DType::int8, 4, 6, 2, 3, 1, 1, {1, 1, 1, 1}, false, true};
  for (const bool is_output : {false, true}) {
    size_t taken = 0;
    for (size_t n = 0; n < Convolved(row).net.model.nodes.size(); ++n) {
      Convolved made(row);
      Model& model = made.net.model;
      if (model.nodes[n].op != "DequantizeLinear") continue;
      Value& value = model.values[static_cast<size_t>(model.nodes[n].outputs[0])];
      if (value.is_output) continue;
      value.is_output = is_output;
      const auto whole = whole_of(model, links_of(model));
      ASSERT_TRUE(whole.ok()) << whole.error().message;
      for (const Unit& unit : whole->units)
        taken += unit.nodes.size() > 1 ? static_cast<size_t>(std::ranges::count(unit.nodes, static_cast<int>(n))) : 0;
    }
    EXPECT_EQ(taken, is_output ? 0U : 3U) << "the image, the filter, the bias";
  }
}

// The host calls get_capability() again after nodes were assigned to providers.
TEST(Units, WhatAProviderHasIsNoPartOfThem) {
  const ConvRow row{"", DType::uint8, DType::int8, 4, 6, 2, 3, 1, 1, {1, 1, 1, 1}, false, true};
  for (size_t n = 0; n < Convolved(row).net.model.nodes.size(); ++n) {
    Convolved made(row);
    Model& model = made.net.model;
    model.nodes[n].is_taken = true;
    const auto whole = whole_of(model, links_of(model));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    const bool only_reads = model.nodes[n].op == "DequantizeLinear";  // the unit then reads the input of that node
    const auto has_it = [&](const Unit& unit) { return std::ranges::count(unit.nodes, static_cast<int>(n)) != 0; };
    EXPECT_FALSE(std::ranges::any_of(whole->units, has_it)) << model.nodes[n].op;
    const auto is_free = [](const Unit& unit) { return unit.refusal.empty() && unit.op == "Conv"; };
    EXPECT_EQ(std::ranges::any_of(whole->units, is_free), only_reads) << model.nodes[n].op;
  }
}

TEST(Capability, WhatAProviderHasStaysOutsideParts) {
  auto target = runtime::open_target("sim:a311d");
  if (!target.ok()) target = runtime::open_target("sim:rk3588");
  if (!target.ok()) GTEST_SKIP() << "no simulated chip with convolutions";
  const ir::Quant quant{{0.05F}, {120}};
  for (const bool is_taken : {false, true}) {
    QdqNet net(DType::uint8);
    const std::vector<int64_t> dims = {1, 8, 6, 6};
    const int before = net.quantized(net.value(DType::float32, dims), quant);
    const int weights = net.constant(DType::uint8, {8, 8, 1, 1}, net.random(64));
    const int y = net.value(DType::float32, dims), x = net.dequantized(before, quant);
    net.node("Conv", {x, net.dequantized(weights, {{0.01F}, {128}})}, {y});
    const int real = net.dequantized(net.quantized(y, {{0.1F}, {110}}), {{0.1F}, {110}});
    net.model.values[static_cast<size_t>(real)].is_output = true;
    for (Node* one : {&net.model.nodes.front(), &net.model.nodes.back()}) one->is_taken = is_taken;
    host::Options options;
    options.session.partition = compile::PartitionBy::all;
    const auto made = capability_of(net.model, *target, options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made->parts.size(), 1u) << made->told.such_as;
    EXPECT_EQ(made->parts[0]->nodes().size(), is_taken ? 4u : 6u);
    EXPECT_EQ(made->parts[0]->inputs()[0].is_float, !is_taken);
  }
}

// A 1x1 convolution between floats that returns its input, and the host's results of its nodes.
struct SameConv {
  QdqNet net;
  int real = kNone, first = kNone;  // the float input, and the output of its QuantizeLinear
  static constexpr std::array kQuants = {0.05F, 0.1F};

  explicit SameConv(DType type, bool per_channel) : net(type) {
    const std::vector<int64_t> dims = {1, 8, 6, 6};
    const int zero = type == DType::int8 ? -8 : 120;
    ir::Quant by;
    Bytes weights(64, 0);
    for (size_t c = 0; c < 8; ++c) {
      weights[c * 9] = static_cast<uint8_t>(per_channel ? 50 + c : 50);
      if (per_channel || c == 0) by.scales.push_back(1.0F / static_cast<float>(weights[c * 9]));
    }
    by.zero_points.assign(by.scales.size(), 0);
    real = net.value(DType::float32, dims);
    first = net.quantized(real, {{kQuants[0]}, {zero}});
    const int y = net.value(DType::float32, dims), x = net.dequantized(first, {{kQuants[0]}, {zero}});
    net.node("Conv", {x, net.dequantized(net.constant(DType::int8, {8, 8, 1, 1}, weights), by)}, {y});
    const ir::Quant out{{kQuants[1]}, {zero - 10}};
    net.model.values[static_cast<size_t>(net.dequantized(net.quantized(y, out), out))].is_output = true;
  }
  std::unique_ptr<Part> part() {
    host::Options options;
    options.session.partition = compile::PartitionBy::all;
    auto target = runtime::open_target("sim:rk3588");
    if (!target.ok()) target = runtime::open_target("sim:a311d");
    if (!target.ok()) return nullptr;
    options.session.compile.per_channel = npu::PerChannel::approximate;
    auto made = capability_of(net.model, *target, options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (!made.ok() || made->parts.size() != 1) return nullptr;
    return std::move(made->parts[0]);
  }
};

// If the part is int8 and the host uint8, or the other way round, zero points change too.
TEST(Capability, FloatsAtTheBorderAreWhatTheHostsNodesMake) {
  if (!runtime::open_target("sim:rk3588").ok() && !runtime::open_target("sim:a311d").ok())
    GTEST_SKIP() << "no simulated chip with convolutions";
  for (const DType type : {DType::uint8, DType::int8}) {
    for (const bool per_channel : {false, true}) {
      SameConv made(type, per_channel);
      const auto part = made.part();
      ASSERT_NE(part, nullptr);
      ASSERT_TRUE(part->inputs()[0].is_float && part->outputs()[0].is_float);
      std::vector<float> in(8 * 36), out(in.size());
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 90) / 9 - 5;
      void* const outputs[] = {out.data()};
      const std::span<const uint8_t> inputs[] = {{reinterpret_cast<const uint8_t*>(in.data()), in.size() * 4}};
      ASSERT_TRUE(part->run(inputs, outputs).ok());
      for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i], in[i], 0.14) << ir::dtype_name(type) << per_channel;
    }
  }
}

// The first QuantizeLinear is in the part, unless other nodes read its output. Other readers of its input do not
// matter.
TEST(Capability, WhatOthersReadOfTheFirstQuantizeLinearStaysTheirs) {
  if (!runtime::open_target("sim:rk3588").ok() && !runtime::open_target("sim:a311d").ok())
    GTEST_SKIP() << "no simulated chip with convolutions";
  enum class Other { none, reads_input, reads_output, is_output };
  for (const Other other : {Other::none, Other::reads_input, Other::reads_output, Other::is_output}) {
    SameConv made(DType::uint8, false);
    if (other == Other::is_output) made.net.model.values[static_cast<size_t>(made.first)].is_output = true;
    if (other == Other::reads_input || other == Other::reads_output)
      made.net
          .node("Odd", {other == Other::reads_input ? made.real : made.first}, {made.net.value(DType::float32, {1})})
          .domain = "org.example";
    const auto part = made.part();
    ASSERT_NE(part, nullptr);
    const bool is_ours = other == Other::none || other == Other::reads_input;
    EXPECT_EQ(part->inputs()[0].is_float, is_ours) << static_cast<int>(other);
    EXPECT_EQ(part->nodes().size(), is_ours ? 6U : 5U) << static_cast<int>(other);
  }
}

// A node of another domain may be a function whose body the host passes later: no warning before that.
TEST(Capability, NobodyMissesFunctions) {
  const auto target =
      runtime::open_target("sim:rk3588").ok() ? runtime::open_target("sim:rk3588") : runtime::open_target("sim:a311d");
  if (!target.ok()) GTEST_SKIP() << "no simulated chip with convolutions";
  for (const char* domain : {"org.example", ""}) {
    QdqNet net(DType::uint8);
    net.node("Odd", {net.value(DType::float32, {1})}, {net.value(DType::float32, {1})}).domain = domain;
    const auto made = capability_of(net.model, *target, {});
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->told.refusals.size(), 1U);
    EXPECT_EQ(made->told.such_as.empty(), *domain != '\0') << made->told.such_as;
  }
}

// The inputs and outputs of a part in a model file are untrusted.
TEST(StoredPart, PortsComeBackOrAreRefused) {
  ir::Graph graph;
  for (const char* name : {"x", "y", "unread"}) {
    ir::Tensor one{.name = name, .dtype = DType::int8, .shape = {1, 2, 2, 3}};
    one.quant = {.scales = {0.5F}, .zero_points = {0}};
    graph.add_tensor(std::move(one));
  }
  graph.inputs = {0}, graph.outputs = {1, 2};
  const std::vector<Port> in = {
      {.name = "", .dims = {1, 3, 2, 2}, .n = 1, .c = 3, .hw = 4, .is_float = true, .scale = 0.25F}};
  const std::vector<Port> out = {{.name = "", .dims = {12}, .n = 12, .flips = true, .zero_point = -128}};
  const std::string note = note_of(in, out);
  const auto read = ports_of(note, graph);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(note_of(read->inputs, read->outputs), note);
  EXPECT_TRUE(read->inputs[0].is_signed && read->outputs[0].is_signed);
  const std::string first = note.substr(0, note.find('\n') + 1), last = note.substr(first.size());
  const auto changed = [&](size_t word, const char* to) {
    std::istringstream words(first);
    std::string all, one;
    for (size_t i = 0; words >> one; ++i) all += (i == word ? to : one) + " ";
    return all + "\n" + last;
  };
  std::vector<std::string> wrong = {"", first, last, note + first, note + "out", "a\nb"};
  for (const auto& [word, to] : {std::pair(1, "2"),
                                 {1, "0"},
                                 {2, "-3"},
                                 {3, "9223372036854775807"},
                                 {6, "0"},
                                 {6, "7f800000"},
                                 {6, "7fc00000"},
                                 {7, "99999"},
                                 {8, "1"},
                                 {8, "-1"},
                                 {9, "2"},
                                 {10, "x"},
                                 {12, "4"}})
    wrong.push_back(changed(static_cast<size_t>(word), to));
  for (const std::string& text : wrong) EXPECT_FALSE(ports_of(text, graph).ok()) << text;
}

}  // namespace
}  // namespace skillet::onnx
