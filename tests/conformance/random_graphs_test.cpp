// Random graphs, compiled for a simulated chip and run there, judged op by op against the CPU kernels.
// Covers what no recorded model has: odd sizes, images and filters that are not square, multipliers, chains that share
// tensors, constants among the operands, outputs that are inputs or listed twice, parts of several jobs, extreme sizes
// and scales, and a device that fails at some job. SKILLET_RANDOM_GRAPHS sets how many (default 300 per tuning),
// SKILLET_RANDOM_GRAPHS_FIRST the first seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/int_math.h"
#include "base/log.h"
#include "drivers/vivante/support.h"
#include "random_ops.h"
#include "ref/ref.h"
#include "runtime/session.h"

namespace skillet {
namespace {

using ir::DType;
using ir::OpKind;
using ir::TensorId;

// Makes one graph from a seed: ops over images, each reading any tensor made before.
class GraphMaker : RandomOps {
 public:
  explicit GraphMaker(uint32_t seed) : RandomOps(seed) {}

  ir::Graph make() {
    dtype_ = chance(2) ? DType::uint8 : DType::int8;
    extreme_ = chance(5);
    for (int i = range(1, 3); i > 0; --i) graph_.inputs.push_back(activation(image_shape()));
    const int ops = range(1, 6);
    for (int i = 0; i < ops; ++i) {
      if (chance(8)) constant_image();
      add_op();
    }
    if (chance(100)) long_chain();
    choose_outputs();
    return std::move(graph_);
  }

 private:
  // ---- tensors ----

  ir::Shape image_shape() {
    if (extreme_ && chance(3)) {
      return any_of(std::array{ir::Shape{1, 2, 130, 256}, ir::Shape{1, 1, 1, 40000}, ir::Shape{1, 9000, 1, 2},
                               ir::Shape{1, 1, 33000, 1}, ir::Shape{1, 3, 4, 2000}, ir::Shape{1, 40000, 2, 1}});
    }
    return chance(6) && !images_.empty() ? shape(any_image()) : ir::Shape{1, range(1, 20), range(1, 20), range(1, 24)};
  }
  TensorId activation(ir::Shape s, float scale = 0) {
    const int32_t zp = chance(3) ? 0 : chance(6) ? 255 : range(0, 255);
    if (!(scale > 0 && std::isnormal(scale)))
      scale = extreme_ && chance(3) ? power(-80, 20) : 0.005F * static_cast<float>(range(1, 20));
    images_.push_back(add_activation(std::move(s), scale, zp));
    return images_.back();
  }
  TensorId same_quant(ir::Shape s, TensorId like) {
    const TensorId id = activation(std::move(s));
    graph_.tensor(id).quant = graph_.tensor(like).quant;
    return id;
  }
  // An activation that is part of the model: the CPU's work.
  void constant_image() {
    const TensorId like = any_image();
    ir::Tensor t = graph_.tensor(like);
    t.name = "c" + std::to_string(graph_.tensors.size());
    ir::set_constant(t, random_bytes(static_cast<size_t>(t.bytes())));
    images_.push_back(graph_.add_tensor(std::move(t)));
  }
  TensorId any_image() { return images_[next() % images_.size()]; }
  const ir::Shape& shape(TensorId id) { return graph_.tensor(id).shape; }
  float scale_of(TensorId id) { return graph_.tensor(id).quant.scale(); }

  // What nobody reads is an output, sometimes what is read as well; sometimes an input or a constant, or one twice.
  void choose_outputs() {
    const auto readers = ir::consumers(graph_);
    const auto producers = ir::producers(graph_);
    for (const TensorId id : images_) {
      const auto at = static_cast<size_t>(id);
      const bool computed = producers[at] >= 0;
      if (computed ? readers[at].empty() || chance(4) : chance(12)) graph_.outputs.push_back(id);
    }
    if (chance(6) && !graph_.outputs.empty()) graph_.outputs.push_back(graph_.outputs[next() % graph_.outputs.size()]);
  }

  // ---- ops ----

  void add_op() {
    switch (range(0, 13)) {
      case 0:
      case 1:
      case 2:
      case 3: return conv(any_image(), false);
      case 4:
      case 5: return conv(any_image(), true);
      case 6: return add();
      case 7: return concatenation();
      case 8: return pad();
      case 9: return unary();
      case 10: return split();
      case 11: return transpose();
      case 12: return reshape();
      default: return fully_connected();
    }
  }

  // Bytes with a share of zero points, as trained filters have.
  TensorId filter(ir::Shape s, int axis, float scale) {
    int32_t zp = dtype_ == DType::int8 ? 0 : range(0, 255);
    if (dtype_ == DType::int8 && chance(8)) zp = range(-128, 127);
    Bytes bytes = random_bytes(static_cast<size_t>(s.elems()));
    for (uint8_t& b : bytes) b = chance(4) ? static_cast<uint8_t>(zp) : b;
    const auto channels = static_cast<size_t>(s[axis]);
    const size_t scales = chance(8) ? channels : 1;
    ir::Quant quant{std::vector<float>(scales, scale), std::vector<int32_t>(scales, zp), axis};
    // Scales that differ: TFLite has them for int8 without a zero point.
    if (dtype_ == DType::int8 && scales > 1 && zp == 0 && chance(2)) quant.scales[0] *= 1.25F;
    return constant(dtype_, std::move(s), bytes, std::move(quant));
  }
  TensorId bias(int count, float scale) {
    if (chance(6)) return ir::kNoTensor;
    const int reach = extreme_ && chance(4) ? INT32_MAX : 2000;
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& v : values) v = static_cast<int32_t>(uniform(-1, 1) * reach);
    return constant(DType::int32, ir::Shape{count}, values, {{scale}, {0}, 0});
  }
  // Scale at which sums of `depth` random products spread over the output range.
  float spread(float in_scale, float filter_scale, int64_t depth) {
    if (extreme_ && chance(4)) return in_scale * filter_scale / power(-30, 12);
    return in_scale * filter_scale * std::sqrt(static_cast<float>(depth)) * 120.0F;
  }

  void conv(TensorId input, bool depthwise) {
    const ir::Shape in = shape(input);
    constexpr std::array kSizes = {1, 1, 2, 3, 3, 3, 4, 5, 7};
    const bool large = in.elems() > 10'000;
    const int kh = large ? range(1, 2) : any_of(kSizes), kw = !large && chance(3) ? any_of(kSizes) : kh;
    ir::ConvAttrs attrs{.padding = chance(2) ? ir::Padding::same : ir::Padding::valid};
    attrs.stride_h = attrs.stride_w = range(1, 2);
    if (chance(20)) attrs.stride_w = range(1, 3);
    if (chance(20)) attrs.dilation_h = attrs.dilation_w = 2;
    attrs.activation = chance(3)    ? ir::Activation::relu
                       : chance(10) ? any_of(std::array{ir::Activation::relu6, ir::Activation::relu_n1_to_1})
                                    : ir::Activation::none;
    const bool valid = attrs.padding == ir::Padding::valid;
    if (valid && (in[1] <= (kh - 1) * attrs.dilation_h || in[2] <= (kw - 1) * attrs.dilation_w)) return unary();
    if (depthwise && in[3] > 2000) return unary();
    attrs.depth_multiplier = depthwise && chance(4) ? 2 : 1;
    const int oc = depthwise ? in[3] * attrs.depth_multiplier : range(1, large ? 4 : 40);
    const int oh = ceil_div(valid ? in[1] - (kh - 1) * attrs.dilation_h : in[1], attrs.stride_h);
    const int ow = ceil_div(valid ? in[2] - (kw - 1) * attrs.dilation_w : in[2], attrs.stride_w);
    const float in_scale = scale_of(input), filter_scale = 0.01F;
    const TensorId weights =
        filter(depthwise ? ir::Shape{1, kh, kw, oc} : ir::Shape{oc, kh, kw, in[3]}, depthwise ? 3 : 0, filter_scale);
    const TensorId biases = bias(oc, in_scale * filter_scale);
    const TensorId output =
        activation({1, oh, ow, oc}, spread(in_scale, filter_scale, int64_t{kh} * kw * (depthwise ? 1 : in[3])));
    graph_.add_op({.kind = depthwise ? OpKind::depthwise_conv_2d : OpKind::conv_2d,
                   .attrs = attrs,
                   .inputs = {input, weights, biases},
                   .outputs = {output}});
  }

  void fully_connected() {
    const TensorId input = any_image();
    const auto depth = static_cast<int32_t>(shape(input).elems());
    const TensorId flat = same_quant({1, depth}, input);
    graph_.add_op({.kind = OpKind::reshape,
                   .attrs = ir::ReshapeAttrs{{1, depth}},
                   .inputs = {input, ints({1, depth})},
                   .outputs = {flat}});
    const int out = range(1, depth > 2000 ? 4 : 40);
    const float in_scale = scale_of(input);
    const TensorId weights = filter({out, depth}, 0, 0.01F);
    const TensorId biases = bias(out, in_scale * 0.01F);
    const TensorId output = activation({1, out}, spread(in_scale, 0.01F, depth));
    graph_.add_op({.kind = OpKind::fully_connected,
                   .attrs = ir::FullyConnectedAttrs{},
                   .inputs = {flat, weights, biases},
                   .outputs = {output}});
    // Only images are operands of other ops here.
    keep_out(flat);
    keep_out(output);
  }
  void keep_out(TensorId id) {
    images_.erase(std::find(images_.begin(), images_.end(), id));
    if (ir::consumers(graph_)[static_cast<size_t>(id)].empty()) graph_.outputs.push_back(id);
  }

  // Of the same shape as `like`; `like` itself when there is no other.
  TensorId partner(TensorId like) {
    std::vector<TensorId> fitting;
    for (const TensorId id : images_) {
      if (shape(id) == shape(like)) fitting.push_back(id);
    }
    return fitting[next() % fitting.size()];
  }
  void add() {
    const TensorId a = any_image(), b = partner(a);
    float scale = scale_of(a) + scale_of(b);
    if (extreme_ && chance(2)) scale *= power(-8, 4);
    const TensorId output = activation(shape(a), scale);
    const auto fused = chance(6) ? ir::Activation::relu : ir::Activation::none;
    graph_.add_op({.kind = OpKind::add, .attrs = ir::ActivationAttrs{fused}, .inputs = {a, b}, .outputs = {output}});
  }
  void concatenation() {
    const TensorId a = any_image(), b = partner(a);
    if (graph_.tensor(a).quant != graph_.tensor(b).quant) return concatenation_of(a, a);
    concatenation_of(a, b);
  }
  void concatenation_of(TensorId a, TensorId b) {
    ir::Shape s = shape(a);
    const int axis = chance(6) ? range(1, 3) : 3;
    s.dims[static_cast<size_t>(axis)] *= 2;
    const TensorId output = same_quant(s, a);
    graph_.add_op(
        {.kind = OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = axis}, .inputs = {a, b}, .outputs = {output}});
  }
  void split() {
    const TensorId input = any_image();
    if (is_odd(shape(input)[3])) return add();
    ir::Shape s = shape(input);
    s.dims[3] /= 2;
    const TensorId axis = constant<int32_t>(DType::int32, {}, {3});
    const TensorId a = same_quant(s, input), b = same_quant(s, input);
    graph_.add_op({.kind = OpKind::split, .attrs = ir::SplitAttrs{2}, .inputs = {axis, input}, .outputs = {a, b}});
  }
  void pad() {
    const TensorId input = any_image();
    std::vector<int32_t> amounts(8, 0);
    for (size_t i = 2; i < 8; ++i) amounts[i] = i >= 6 && !chance(3) ? 0 : range(0, 2);
    ir::Shape s = shape(input);
    for (size_t d = 1; d < 4; ++d) s.dims[d] += amounts[2 * d] + amounts[2 * d + 1];
    const TensorId paddings = constant(DType::int32, {4, 2}, amounts);
    graph_.add_op({.kind = OpKind::pad, .inputs = {input, paddings}, .outputs = {same_quant(s, input)}});
  }
  void transpose() {
    const TensorId input = any_image();
    const ir::Shape s = shape(input);
    const bool to_planar = chance(2);
    const std::vector<int32_t> order = to_planar ? std::vector<int32_t>{0, 3, 1, 2} : std::vector<int32_t>{0, 2, 3, 1};
    const TensorId output = same_quant({1, s[order[1]], s[order[2]], s[order[3]]}, input);
    graph_.add_op({.kind = OpKind::transpose, .inputs = {input, ints(order)}, .outputs = {output}});
  }
  void reshape() {
    const TensorId input = any_image();
    const ir::Shape s = shape(input);
    const ir::Shape to = any_of(std::array{s, ir::Shape{1, s[2], s[1], s[3]}, ir::Shape{1, 1, s[1] * s[2], s[3]},
                                           ir::Shape{1, s[3], s[1], s[2]}});
    graph_.add_op({.kind = OpKind::reshape,
                   .attrs = ir::ReshapeAttrs{to.dims},
                   .inputs = {input, ints(to.dims)},
                   .outputs = {same_quant(to, input)}});
  }
  void unary() {
    const TensorId input = any_image();
    const OpKind kind = any_of(std::array{OpKind::relu, OpKind::abs, OpKind::logistic});
    TensorId output = ir::kNoTensor;
    if (kind == OpKind::logistic) {
      output = activation(shape(input), 1.0F / 256);
      graph_.tensor(output).quant.zero_points = {dtype_ == DType::int8 ? -128 : 0};
    } else {
      output = chance(2) ? same_quant(shape(input), input) : activation(shape(input), scale_of(input) * power(-2, 2));
    }
    graph_.add_op({.kind = kind, .inputs = {input}, .outputs = {output}});
  }
  // More commands than one submission takes.
  void long_chain() {
    TensorId at = activation({1, 6, range(1, 3), 2}, 0.1F);
    graph_.inputs.push_back(at);
    const int length = range(400, 900);
    for (int i = 0; i < length; ++i) {
      const TensorId to = same_quant(shape(at), at);
      graph_.add_op({.kind = is_odd(i) ? OpKind::relu : OpKind::abs, .inputs = {at}, .outputs = {to}});
      if (!chance(50)) images_.erase(std::find(images_.begin(), images_.end(), at));  // few of them are outputs
      at = to;
    }
  }

  bool extreme_ = false;
  std::vector<TensorId> images_;
};

struct Tally {
  int compared = 0, on_cpu = 0, fallbacks = 0, jobs_max = 0;
};

std::vector<Bytes> random_inputs(const ir::Graph& graph, uint32_t seed) {
  std::mt19937 random(seed ^ 0x5a5a);
  std::vector<Bytes> inputs;
  for (const TensorId id : graph.inputs) {
    Bytes& bytes = inputs.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  }
  return inputs;
}

// The ops on the chip, each against the CPU's kernel for the chip's own inputs.
std::string check_chip(runtime::Session& session, Tally& tally) {
  const auto diffs = session.compare_layers();
  if (!diffs.ok()) return diffs.error().message;
  for (const runtime::LayerDiff& diff : *diffs) {
    tally.compared += diff.compared;
    const OpKind kind = session.graph().op(diff.op).kind;
    if (diff.compared && diff.max_abs_diff > drivers::vivante::tolerance(kind))
      return fmt::format("{}: {} of {} elements differ, by up to {}", ir::describe_op(session.graph(), diff.op),
                         diff.differing, diff.elems, diff.max_abs_diff);
  }
  return "";
}

// The ops on the CPU, from the start or since the device failed: exactly what the kernel makes of the same inputs.
std::string check_cpu(runtime::Session& session, Tally& tally) {
  const ir::Graph& graph = session.graph();
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    const runtime::PartReport& part = session.report().parts[session.report().ops[i].part];
    if (part.on_npu && part.fallback.empty()) continue;
    ++tally.on_cpu;
    std::vector<Bytes> bytes(graph.tensors.size());
    std::vector<std::span<uint8_t>> spans(graph.tensors.size());
    for (const auto* operands : {&graph.op(id).inputs, &graph.op(id).outputs}) {
      for (const TensorId tensor : *operands) {
        if (tensor == ir::kNoTensor) continue;
        auto now = session.tensor(tensor);
        if (!now.ok()) return now.error().message;
        bytes[static_cast<size_t>(tensor)] = std::move(now).value();
        spans[static_cast<size_t>(tensor)] = bytes[static_cast<size_t>(tensor)];
      }
    }
    const auto before = bytes;
    const auto kernel = ref::prepare(graph, id);
    if (!kernel.ok()) return kernel.error().message;
    if (auto ran = (*kernel)->run(spans); !ran.ok()) return ran.error().message;
    if (bytes != before) return ir::describe_op(graph, id) + ": not what its CPU kernel gives";
  }
  return "";
}

std::string run_and_check(runtime::Session& session, const std::vector<Bytes>& inputs, Tally& tally) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (auto set = session.set_input(i, inputs[i]); !set.ok()) return set.error().message;
  }
  if (auto ran = session.run(); !ran.ok()) return ran.error().message;
  for (std::string problem : {check_chip(session, tally), check_cpu(session, tally)}) {
    if (!problem.empty()) return problem;
  }
  const ir::Graph& graph = session.graph();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const auto input = std::find(graph.inputs.begin(), graph.inputs.end(), graph.outputs[i]);
    if (input == graph.inputs.end()) continue;
    if (!std::ranges::equal(session.output(i).value(), inputs[static_cast<size_t>(input - graph.inputs.begin())]))
      return fmt::format("output {} is an input, but has other bytes", i);
  }
  return "";
}

// Empty when all is well, else what is wrong. The device fails from submission `fail_from` of the first run on.
std::string judge(uint32_t seed, driver::Tuning tuning, const runtime::Target& target, FailingDevice& device,
                  int fail_from, Tally& tally) {
  ir::Graph graph = GraphMaker(seed).make();
  const std::string text = "\n" + ir::print(graph).substr(0, 10'000);
  if (auto fine = ir::verify(graph); !fine.ok()) return "the test made a bad graph: " + fine.error().message + text;
  const bool fails = fail_from >= 0;
  const auto inputs = random_inputs(graph, seed);
  device.fail_from = 1 << 30;
  auto session = runtime::Session::create(
      std::move(graph), target, {.compile = {.tuning = tuning}, .allow_fallback = fails, .keep_intermediates = true});
  if (!session.ok()) return session.error().message + text;
  for (size_t part = 0; part < (*session)->report().parts.size(); ++part) {
    if (const auto* program = (*session)->program(part))
      tally.jobs_max = std::max(tally.jobs_max, static_cast<int>(program->jobs.size()));
  }
  device.submits = 0;
  if (fails) device.fail_from = fail_from;
  for (int run = 0; run < (fails ? 3 : 1); ++run) {
    const std::string problem = run_and_check(**session, inputs, tally);
    if (!problem.empty()) return fmt::format("run {}: {}{}", run, problem, text);
  }
  for (const runtime::PartReport& part : (*session)->report().parts) tally.fallbacks += !part.fallback.empty();
  return "";
}

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text ? static_cast<uint32_t>(std::atoi(text)) : otherwise;
}

// A simulated chip and a tuning.
class RandomGraphs : public testing::TestWithParam<std::tuple<const char*, driver::Tuning>> {
 protected:
  void SetUp() override {
    auto target = runtime::open_target(fmt::format("sim:{}", std::get<0>(GetParam())));
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = *target;
    auto device = std::make_unique<FailingDevice>(std::move(target_.context->device));
    device_ = device.get();
    target_.context->device = std::move(device);
  }
  // `fail_from(seed)`: negative for a device that works.
  template <typename FailFrom>
  Tally judge_all(uint32_t count, FailFrom fail_from) {
    Tally tally;
    const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
    int failures = 0;
    for (uint32_t seed = first; seed < first + count && failures < 5; ++seed) {
      const std::string problem = judge(seed, std::get<1>(GetParam()), target_, *device_, fail_from(seed), tally);
      if (problem.empty()) continue;
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << problem;
    }
    std::printf("%u graphs: %d ops compared on the chip, %d on the CPU, up to %d jobs in a part, %d parts fell back\n",
                count, tally.compared, tally.on_cpu, tally.jobs_max, tally.fallbacks);
    return tally;
  }

  runtime::Target target_;
  FailingDevice* device_ = nullptr;
};

TEST_P(RandomGraphs, AgreeWithTheCpuKernels) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 300);
  const Tally tally = judge_all(count, [](uint32_t) { return -1; });
  if (count < 300) return;
  // Else most of the test is not about the chip, or not about what it says at the top.
  EXPECT_GT(tally.compared, static_cast<int>(count));
  EXPECT_GT(tally.on_cpu, static_cast<int>(count) / 5);
  // With four TP cores a reshuffle has words enough to fill jobs.
  if (std::string_view(std::get<0>(GetParam())) == "a311d") {
    EXPECT_GT(tally.jobs_max, 1);
  }
}

TEST_P(RandomGraphs, AreRightWithoutTheDevice) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 300) / 3;
  const log::ScopedLevel quiet(log::Level::error);  // each fallback is a warning
  const Tally tally = judge_all(count, [](uint32_t seed) { return static_cast<int>(seed % 4); });
  if (count < 100) return;
  EXPECT_GT(tally.fallbacks, static_cast<int>(count) / 4);
}

INSTANTIATE_TEST_SUITE_P(Chips, RandomGraphs,
                         testing::Combine(testing::Values("a311d", "imx8mp"),
                                          testing::Values(driver::Tuning::proven, driver::Tuning::tuned)),
                         [](const auto& test) {
                           const bool proven = std::get<1>(test.param) == driver::Tuning::proven;
                           return fmt::format("{}_{}", std::get<0>(test.param), proven ? "proven" : "tuned");
                         });

}  // namespace
}  // namespace skillet
