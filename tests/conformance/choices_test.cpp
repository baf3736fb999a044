// Choices change jobs, not results: random networks with choices drawn from all that a driver lists give the bits of
// proven; so do single switches, and the choices that the timing model prefers. SKILLET_RANDOM_GRAPHS: number of
// networks (default 60 per chip); SKILLET_RANDOM_GRAPHS_FIRST: first seed.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>

#include "base/log.h"
#include "graph/passes/testing/layers.h"
#include "npu/forwarding_driver.h"
#include "random_graph.h"
#include "runtime/session.h"

namespace skillet {
namespace {

using Outputs = std::vector<Bytes>;
using Counts = std::map<std::string, int>;

// Compiles with random choices: for each op and name one of the values, or none.
class RandomChoices : public npu::ForwardingDriver {
 public:
  RandomChoices(const npu::Driver& inner, uint32_t seed, Counts& made)
      : ForwardingDriver(inner), seed_(seed), made_(made) {}

  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    SK_TRY_ASSIGN(const std::vector<npu::Choice> open, inner().choices(chip, graph, options));
    std::map<std::pair<ir::OpId, std::string>, std::vector<npu::Choice>> questions;
    for (const npu::Choice& one : open) questions[{one.op, one.name}].push_back(one);
    npu::CompileOptions chosen = options;
    std::mt19937 random(seed_);
    for (const auto& [key, values] : questions) {
      const size_t pick = random() % (values.size() + 1);
      if (pick == values.size()) continue;
      chosen.choices.push_back(values[pick]);
      ++made_[key.second];
    }
    return inner().compile(chip, graph, chosen);
  }

 private:
  uint32_t seed_;
  Counts& made_;
};

// Makes networks of the shapes that choices concern, with any zero points.
class NetworkMaker : RandomOps {
 public:
  explicit NetworkMaker(uint32_t seed) : RandomOps(seed), seed_(seed) {}

  ir::Graph make() {
    const bool is_small = chance(3);
    ir::Shape image{1, is_small ? range(3, 9) : range(8, 40), is_small ? range(3, 9) : range(8, 40),
                    chance(2) ? range(1, 5) : any_of(kChannels)};
    if (image[3] <= 5 && chance(2)) image = {1, image[1] / 2 * 2, image[2] / 2 * 2, image[3]};
    std::vector<std::string> ops;
    char last = 'a';
    if (image[3] <= 5) ops.push_back(first_layer(last));
    for (int left = range(1, 3); left > 0; --left) ops.push_back(layer(last));
    if (chance(3)) {
      const char from = last++;
      ops.push_back(fmt::format("{}=conv({}) c={} k=1", last, from, any_of(kChannels)));
    }
    if (chance(3)) {
      const char from = last++, other = last++;
      ops.push_back(fmt::format("{}=depthwise({}) k=3", other, from));
      ops.push_back(fmt::format("{}=add({},{})", last, from, other));
    }
    passes::Layers layers(image, ops, std::string_view(&last, 1), seed_);
    if (!layers.problem.empty()) return NetworkMaker(next()).make();  // a window larger than its image
    if (is_small || chance(3)) average(layers.graph);
    requantize(layers.graph);
    if (layers.graph.tensor(0).dtype == ir::DType::int8 && chance(2)) change_sign(layers.graph);
    return std::move(layers.graph);
  }

 private:
  static constexpr std::array kChannels = {8, 16, 24, 32, 48, 64, 80, 96, 128, 144, 160, 192};

  std::string layer(char& last) {
    const char from = last++;
    const int k = any_of(std::array{1, 3, 3, 5}), s = chance(3) ? 2 : 1;
    const std::string valid = chance(4) ? " valid" : "";
    if (chance(2)) return fmt::format("{}=depthwise({}) k={} s={}{}", last, from, std::max(k, 3), s, valid);
    return fmt::format("{}=conv({}) k={} s={} c={}{}", last, from, k, s, any_of(kChannels), valid);
  }

  // Few channels, mostly with stride 2.
  std::string first_layer(char& last) {
    const char from = last++;
    return fmt::format("{}=conv({}) k={} s={} c={}{}", last, from, any_of(std::array{1, 2, 3, 3, 5, 7}),
                       chance(4) ? 1 : 2, any_of(kChannels), chance(4) ? " valid" : "");
  }

  // An average of the whole image, if that is small.
  void average(ir::Graph& graph) {
    const ir::TensorId from = graph.outputs[0];
    const ir::Shape in = graph.tensor(from).shape;
    if (in[1] > 12 || in[2] > 12) return;
    ir::Tensor to = graph.tensor(from);
    to.name = "average";
    to.shape = {1, 1, 1, in[3]};
    const ir::TensorId output = graph.add_tensor(std::move(to));
    graph.add_op({.kind = ir::OpKind::average_pool_2d,
                  .attrs = ir::PoolAttrs{.padding = ir::Padding::valid, .filter_h = in[1], .filter_w = in[2]},
                  .inputs = {from},
                  .outputs = {output}});
    graph.outputs = {output};
  }

  void requantize(ir::Graph& graph) {
    const bool is_signed = chance(2);
    for (ir::Tensor& tensor : graph.tensors) {
      if (tensor.dtype != ir::DType::uint8) continue;
      const bool weights = tensor.is_constant();
      const int32_t zero = weights ? (is_signed ? 128 : range(90, 160)) : chance(3) ? 0 : range(0, 255);
      if (tensor.name != "average") zero_ = weights ? zero_ : zero;
      tensor.quant.zero_points = {tensor.name == "average" ? zero_ : zero};
      if (!is_signed) continue;
      tensor.dtype = ir::DType::int8;
      tensor.quant.zero_points[0] -= 128;
    }
  }

  // Adds a QUANTIZE in front: the host's input has unsigned bytes.
  void change_sign(ir::Graph& graph) {
    ir::Tensor unsigned_input = graph.tensor(graph.inputs[0]);
    unsigned_input.name = "pixels";
    unsigned_input.dtype = ir::DType::uint8;
    unsigned_input.quant.zero_points[0] += 128;
    const ir::TensorId from = graph.add_tensor(std::move(unsigned_input)), to = graph.inputs[0];
    graph.ops.insert(graph.ops.begin(), {.kind = ir::OpKind::quantize, .attrs = {}, .inputs = {from}, .outputs = {to}});
    graph.inputs = {from};
  }

  uint32_t seed_;
  int32_t zero_ = 0;
};

class Choices : public testing::TestWithParam<const char*> {
  log::ScopedLevel level_{log::Level::error};

 protected:
  void SetUp() override {
    auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = *target;
  }

  Result<Outputs> run(const ir::Graph& graph, const npu::CompileOptions& options, const npu::Driver* compiler,
                      uint32_t seed) {
    npu::CompileOptions all = options;
    all.unproven = npu::Unproven::take;
    SK_TRY_ASSIGN(compile::Compiled compiled,
                  compile::compile(graph, {target_.driver, target_.chip}, {.driver = all, .compiler = compiler}));
    SK_TRY_ASSIGN(const auto session,
                  runtime::Session::create(std::move(compiled), target_, {.allow_fallback = false}));
    const std::vector<Bytes> inputs = random_inputs(graph, seed);
    const std::vector<std::span<const uint8_t>> spans(inputs.begin(), inputs.end());
    return session->run(spans);
  }

  void same(const ir::Graph& graph, const npu::CompileOptions& options, const npu::Driver* compiler, uint32_t seed,
            std::string_view what) {
    const auto proven = run(graph, {}, nullptr, seed), other = run(graph, options, compiler, seed);
    ASSERT_TRUE(proven.ok()) << proven.error().message;
    ASSERT_TRUE(other.ok()) << what << ", seed " << seed << ": " << other.error().message;
    EXPECT_TRUE(*other == *proven) << what << ", seed " << seed << "\n" << ir::print(graph).substr(0, 5'000);
  }

  // Returns the switches that are in tuned and not in proven.
  std::vector<std::string> tuned_switches() const {
    std::vector<std::string> names;
    for (const npu::TuningSwitch& row : target_.driver->switches())
      if (row.since == npu::Tuning::tuned) names.emplace_back(row.name);
    return names;
  }

  runtime::Target target_;
};

TEST_P(Choices, AnyOfThemGiveTheSameBits) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 24);
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  Counts made;
  for (uint32_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const RandomChoices all(*target_.driver, seed, made);
    same(NetworkMaker(seed).make(), {.tuning = npu::Tuning::tuned}, &all, seed, "any choices");
    same(GraphMaker(seed).make(), {.tuning = npu::Tuning::tuned}, &all, seed, "any choices, small graphs");
  }
  std::printf("%s, %u networks: %s\n", GetParam(), count, fmt::format("{}", made).c_str());
  if (first != 1) return;
  EXPECT_FALSE(made.empty()) << "no network has anything to choose";
}

// First layers whose windows begin at any offset in the rearranged image that choices produce.
TEST_P(Choices, FirstLayersOfAnyWindow) {
  Counts made;
  for (const int k : {1, 2, 3, 5, 7}) {
    for (const char* padding : {"", " valid"}) {
      for (uint32_t seed = 1; seed <= 4 && !HasFailure(); ++seed) {
        const passes::Layers layers({1, 12, 10, 3}, {fmt::format("b=conv(a) k={} s=2 c=16{}", k, padding)}, "b", seed);
        ASSERT_EQ(layers.problem, "");
        const RandomChoices all(*target_.driver, seed, made);
        same(layers.graph, {.tuning = npu::Tuning::tuned}, &all, seed, "first layers");
      }
    }
  }
}

TEST_P(Choices, EachSwitchAloneGivesTheSameBits) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 24) / 4;
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const std::vector<std::string> names = tuned_switches();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    Counts made;
    for (uint32_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      const RandomChoices all(*target_.driver, seed, made);
      same(NetworkMaker(seed).make(), {.switches = {name}}, &all, seed, name);
    }
    for (const auto& [other, times] : made) EXPECT_EQ(other, name) << "a choice whose switch is off";
  }
}

TEST_P(Choices, WhatTheModelPrefersGivesTheSameBits) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 24) / 4;
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  for (uint32_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const ir::Graph graph = NetworkMaker(seed).make();
    const runtime::SessionOptions tuned{.compile = {.tuning = npu::Tuning::tuned}, .allow_fallback = false};
    const auto session = runtime::Session::create(graph, target_, tuned);
    ASSERT_TRUE(session.ok()) << session.error().message;
    const std::vector<Bytes> inputs = random_inputs(graph, seed);
    const std::vector<std::span<const uint8_t>> spans(inputs.begin(), inputs.end());
    const auto chosen = (*session)->run(spans), proven = run(graph, {}, nullptr, seed);
    ASSERT_TRUE(chosen.ok() && proven.ok());
    EXPECT_TRUE(*chosen == *proven) << "seed " << seed << "\n" << ir::print(graph).substr(0, 5'000);
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Choices, testing::Values("a311d", "s905d3", "imx8mp", "rk3588"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace skillet
