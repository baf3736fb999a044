// Random int8 networks with a scale per weight channel on chips that have one scale per job, each operation against the
// original model's on the CPU: with exact never more than 1 step off, with approximate never more than the stated
// bound. SKILLET_RANDOM_GRAPHS: networks per chip and mode (default 32); SKILLET_RANDOM_GRAPHS_FIRST: first seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "base/log.h"
#include "npu/steps_off.h"
#include "random_graph.h"
#include "runtime/session.h"

namespace skillet {
namespace {

using ir::OpKind;
using ir::TensorId;

// Makes a chain of layers, with operations in between that need channels in the model's order.
class Maker : RandomOps {
 public:
  explicit Maker(uint32_t seed) : RandomOps(seed) { dtype_ = ir::DType::int8; }

  ir::Graph make() {
    TensorId at = add_activation({1, range(1, 12), range(1, 12), range(1, 20)}, 0.05F, range(0, 255));
    graph_.inputs.push_back(at);
    for (int i = range(1, 4); i > 0; --i) at = add_op(at);
    if (chance(4)) at = weighted(at, OpKind::fully_connected);
    graph_.outputs.push_back(at);
    return std::move(graph_);
  }

 private:
  const ir::Shape& shape(TensorId id) { return graph_.tensor(id).shape; }

  TensorId add_op(TensorId at) {
    switch (range(0, 6)) {
      case 0:
      case 1: return weighted(at, OpKind::depthwise_conv_2d);
      case 2: return residual(at);
      case 3: return same(at, OpKind::relu);
      default: return weighted(at, OpKind::conv_2d);
    }
  }

  TensorId same(TensorId at, OpKind kind) {
    const TensorId to = add_activation(shape(at), graph_.tensor(at).quant.scale(), 0);
    graph_.tensor(to).quant = graph_.tensor(at).quant;
    graph_.add_op({.kind = kind, .inputs = {at}, .outputs = {to}});
    return to;
  }

  TensorId residual(TensorId at) {
    const TensorId other = same(at, OpKind::relu);
    const TensorId to = add_activation(shape(at), 2 * graph_.tensor(at).quant.scale(), range(0, 255));
    graph_.add_op({.kind = OpKind::add, .attrs = ir::ActivationAttrs{}, .inputs = {at, other}, .outputs = {to}});
    return to;
  }

  // Scales that are about equal, or up to 2^20 apart, or a few of which are far below the others.
  std::vector<float> scales(int32_t count) {
    std::vector<float> out;
    const double reach = any_of(std::array{0.002, 0.02, 1.0, 4.0, 20.0});
    for (int32_t i = 0; i < count; ++i) out.push_back(0.01F * power(-reach, 0) * (chance(8) ? power(-20, 0) : 1.0F));
    if (chance(3)) std::ranges::fill(out, 0.01F);
    if (chance(3)) out.back() = 0.01F;
    return out;
  }

  TensorId filter(ir::Shape s, int axis) {
    const size_t channels = static_cast<size_t>(s[axis]),
                 inner = axis == 0 ? static_cast<size_t>(s.elems()) / channels : 1;
    Bytes bytes = random_bytes(static_cast<size_t>(s.elems()));
    const size_t zeros = chance(3) ? next() % channels : channels;  // a channel without weights
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (i / inner % channels == zeros || chance(6)) bytes[i] = 0;
      if (bytes[i] == 0x80) bytes[i] = 0x81;
    }
    ir::Quant quant{scales(static_cast<int32_t>(channels)), std::vector<int32_t>(channels, 0), axis};
    return constant(dtype_, std::move(s), bytes, std::move(quant));
  }

  TensorId bias(int32_t count) {
    if (chance(6)) return ir::kNoTensor;
    const double reach = any_of(std::array{300.0, 3000.0, 1e6, 2e9});
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& value : values) value = static_cast<int32_t>(uniform(-1, 1) * reach);
    return constant(ir::DType::int32, ir::Shape{count}, values);
  }

  TensorId weighted(TensorId at, OpKind kind) {
    const ir::Shape in = shape(at);
    const bool depthwise = kind == OpKind::depthwise_conv_2d, is_list = kind == OpKind::fully_connected;
    const auto inputs = static_cast<int32_t>(in.elems());
    const int32_t size = any_of(std::array{1, 3, 3, 2}), stride = range(1, 2),
                  channels = depthwise ? in[3] : range(2, 40);
    const TensorId weights = is_list     ? filter({channels, inputs}, 0)
                             : depthwise ? filter({1, size, size, channels}, 3)
                                         : filter({channels, size, size, in[3]}, 0);
    const int32_t taps = is_list ? inputs : size * size * (depthwise ? 1 : in[3]);
    const float step = graph_.tensor(at).quant.scale() * 0.01F * power(-3, 0);
    const TensorId from = is_list ? flat(at, inputs) : at;
    const ir::Shape out =
        is_list ? ir::Shape{1, channels} : ir::Shape{1, ceil_div(in[1], stride), ceil_div(in[2], stride), channels};
    const TensorId to = add_activation(out, step * 120 * std::sqrt(static_cast<float>(taps)), range(0, 255));
    const ir::Activation activation = chance(2) ? ir::Activation::relu : ir::Activation::none;
    ir::Op op{.kind = kind, .inputs = {from, weights, bias(channels)}, .outputs = {to}};
    if (is_list)
      op.attrs = ir::FullyConnectedAttrs{.activation = activation};
    else
      op.attrs = ir::ConvAttrs{.stride_h = stride, .stride_w = stride, .activation = activation};
    graph_.add_op(std::move(op));
    return to;
  }

  TensorId flat(TensorId at, int32_t elems) {
    const TensorId to = add_activation({1, elems}, 1, 0);
    graph_.tensor(to).quant = graph_.tensor(at).quant;
    graph_.add_op({.kind = OpKind::reshape,
                   .attrs = ir::ReshapeAttrs{{1, elems}},
                   .inputs = {at, ints({1, elems})},
                   .outputs = {to}});
    return to;
  }
};

// Counts over all graphs.
struct Tally {
  int layers = 0, weighted = 0, changed = 0, grouped = 0, far = 0;
};

// Inputs at the ends of their range, where sums are largest, or random.
Bytes input_bytes(const ir::Tensor& tensor, std::mt19937& random, int run) {
  Bytes bytes(static_cast<size_t>(tensor.bytes()));
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(random());
    if (run > 0) byte = byte & 1 ? 0x80 : 0x7f;
  }
  return bytes;
}

// Runs the same program as an application does, without intermediates kept: their channels are then in the chip's own
// order, and are reordered for comparison otherwise.
std::string differs_unless_kept(const ir::Graph& graph, const runtime::Target& target, runtime::SessionOptions options,
                                runtime::Session& kept, const Bytes& input) {
  options.keep_intermediates = false;
  auto session = runtime::Session::create(graph, target, options);
  if (!session.ok()) return session.error().message;
  const std::vector<std::span<const uint8_t>> inputs{input};
  const auto outputs = (*session)->run(inputs);
  if (!outputs.ok()) return outputs.error().message;
  return std::ranges::equal((*outputs)[0], kept.output(0).value()) ? "" : "the output depends on what is kept";
}

std::string judge(uint32_t seed, const runtime::Target& target, npu::PerChannel mode, Tally& tally) {
  ir::Graph graph = Maker(seed).make();
  const std::string text = "\n" + ir::print(graph).substr(0, 10'000);
  const runtime::SessionOptions options{
      .compile = {.per_channel = mode}, .allow_fallback = false, .keep_intermediates = true};
  auto compiled = runtime::compile_for(target, graph, options);
  if (!compiled.ok()) return compiled.error().message + text;
  std::map<ir::OpId, int> worst;
  for (const passes::WeightChange& change : compiled->weight_changes) {
    worst[change.op] = change.worst;
    if (mode == npu::PerChannel::exact && change.worst > 1) return change.text() + text;
    tally.grouped += change.scales > 1;
    tally.far += change.worst > 1;
  }
  tally.changed += static_cast<int>(worst.size());
  auto session = runtime::Session::create(std::move(*compiled), target, options);
  if (!session.ok()) return session.error().message + text;
  std::mt19937 random(seed);
  for (int run = 0; run < 3; ++run) {
    const ir::Graph& now = (*session)->graph();
    const Bytes input = input_bytes(now.tensor(now.inputs[0]), random, run);
    if (auto set = (*session)->set_input(0, input); !set.ok()) return set.error().message;
    if (auto ran = (*session)->run(); !ran.ok()) return ran.error().message + text;
    const std::string differs = run > 0 ? "" : differs_unless_kept(graph, target, options, **session, input);
    if (!differs.empty()) return differs + text;
    const auto diffs = (*session)->compare_layers();
    if (!diffs.ok()) return diffs.error().message + text;
    for (const runtime::LayerDiff& diff : *diffs) {
      if (!diff.compared) return ir::describe_op(now, diff.op) + ": not compared" + text;
      const OpKind kind = now.op(diff.op).kind;
      const int tolerance = npu::steps_off(*target.driver, target.chip, now, diff.op);
      const int allowed = std::max(tolerance, worst.contains(diff.op) ? worst[diff.op] : 0);
      if (diff.max_abs_diff > allowed)
        return fmt::format("{}: differs by up to {}, {} allowed{}", ir::describe_op(now, diff.op), diff.max_abs_diff,
                           allowed, text);
      ++tally.layers;
      tally.weighted += kind == OpKind::conv_2d || kind == OpKind::depthwise_conv_2d || kind == OpKind::fully_connected;
    }
  }
  return "";
}

class PerChannel : public testing::TestWithParam<std::tuple<const char*, npu::PerChannel>> {};

TEST_P(PerChannel, LayersAreAsFarOffAsTheyMayBe) {
  const log::ScopedLevel quiet(log::Level::error);
  const auto& [chip, mode] = GetParam();
  const auto target = runtime::open_target(fmt::format("sim:{}", chip));
  ASSERT_TRUE(target.ok()) << target.error().message;
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 32);
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  Tally tally;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const std::string problem = judge(seed, *target, mode, tally);
    ASSERT_TRUE(problem.empty()) << "seed " << seed << ": " << problem;
  }
  std::printf(
      "%u graphs: %d layers compared, %d with weights; %d with changed weights, %d of them in several jobs, "
      "%d more than 1 step off\n",
      count, tally.layers, tally.weighted, tally.changed, tally.grouped, tally.far);
  if (first != 1) return;
  // With fewer, the test does not cover its subject.
  EXPECT_GT(tally.weighted, static_cast<int>(count) / 2);
  EXPECT_GT(tally.changed, static_cast<int>(count) / 8);
  EXPECT_GT(tally.grouped, static_cast<int>(count) / 16);
  EXPECT_EQ(tally.far > 0, mode == npu::PerChannel::approximate);
}

INSTANTIATE_TEST_SUITE_P(Chips, PerChannel,
                         testing::Combine(testing::Values("a311d", "s905d3", "imx8mp"),
                                          testing::Values(npu::PerChannel::exact, npu::PerChannel::approximate)),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param),
                                              npu::per_channel_name(std::get<1>(test.param)));
                         });

}  // namespace
}  // namespace skillet
