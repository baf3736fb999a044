// Random small graphs, compiled for a simulated chip and run there, judged op by op against the CPU kernels.
// Covers what no recorded model has: odd sizes, images and filters that are not square, multipliers, chains that share
// tensors. SKILLET_RANDOM_GRAPHS sets how many (default 300 per chip and tuning).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "base/int_math.h"
#include "runtime/session.h"

namespace skillet {
namespace {

using ir::DType;
using ir::OpKind;
using ir::TensorId;

// Makes one graph from a seed: a chain of ops over images, each reading any tensor made before.
class GraphMaker {
 public:
  explicit GraphMaker(uint32_t seed) : random_(seed) {}

  ir::Graph make() {
    dtype_ = chance(2) ? DType::uint8 : DType::int8;
    const TensorId input = activation({1, range(1, 20), range(1, 20), range(1, 24)});
    graph_.inputs = {input};
    const int ops = range(1, 4);
    for (int i = 0; i < ops; ++i) add_op();
    // Everything nobody reads is an output, and sometimes what is read as well.
    const auto readers = ir::consumers(graph_);
    for (const TensorId id : images_) {
      if (id != input && (readers[static_cast<size_t>(id)].empty() || chance(4))) graph_.outputs.push_back(id);
    }
    return std::move(graph_);
  }

 private:
  int range(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1)); }
  bool chance(int one_in) { return random_() % static_cast<uint32_t>(one_in) == 0; }
  int32_t zero_point(DType dtype) {
    const int32_t v = chance(3) ? 0 : range(0, 255);
    return dtype == DType::int8 ? v - 128 : v;
  }

  TensorId activation(ir::Shape shape, float scale = 0) {
    ir::Tensor t{.name = "t" + std::to_string(graph_.tensors.size()), .dtype = dtype_, .shape = std::move(shape)};
    t.quant = {{scale > 0 ? scale : 0.005F * static_cast<float>(range(1, 20))}, {zero_point(dtype_)}, 0};
    images_.push_back(graph_.add_tensor(std::move(t)));
    return images_.back();
  }
  TensorId same_quant(ir::Shape shape, TensorId like) {
    const TensorId id = activation(std::move(shape));
    graph_.tensor(id).quant = graph_.tensor(like).quant;
    return id;
  }
  template <typename T>
  TensorId constant(DType dtype, ir::Shape shape, const std::vector<T>& values, ir::Quant quant = {}) {
    ir::Tensor t{.name = "c" + std::to_string(graph_.tensors.size()),
                 .dtype = dtype,
                 .shape = std::move(shape),
                 .quant = std::move(quant)};
    Bytes bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    ir::set_constant(t, std::move(bytes));
    return graph_.add_tensor(std::move(t));
  }
  TensorId any_image() { return images_[random_() % images_.size()]; }
  const ir::Shape& shape(TensorId id) { return graph_.tensor(id).shape; }

  void add_op() {
    switch (range(0, 11)) {
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
      default: return fully_connected();
    }
  }

  // Bytes with a share of zero points, as trained filters have.
  TensorId filter(ir::Shape s, float scale) {
    const int32_t zp = dtype_ == DType::int8 ? 0 : zero_point(dtype_);
    std::vector<uint8_t> bytes(static_cast<size_t>(s.elems()));
    for (uint8_t& b : bytes) b = chance(4) ? static_cast<uint8_t>(zp) : static_cast<uint8_t>(random_());
    return constant(dtype_, std::move(s), bytes, {{scale}, {zp}, 0});
  }
  TensorId bias(int count, float scale) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& v : values) v = range(-2000, 2000);
    return constant(DType::int32, ir::Shape{count}, values, {{scale}, {0}, 0});
  }

  // Scale at which sums of `depth` random products spread over the output range.
  static float spread(float in_scale, float filter_scale, int64_t depth) {
    return in_scale * filter_scale * std::sqrt(static_cast<float>(depth)) * 120.0F;
  }

  void conv(TensorId input, bool depthwise) {
    const ir::Shape in = shape(input);
    static constexpr int kSizes[] = {1, 1, 2, 3, 3, 3, 4, 5, 7};
    const int kh = kSizes[random_() % std::size(kSizes)];
    const int kw = chance(3) ? kSizes[random_() % std::size(kSizes)] : kh;
    ir::ConvAttrs attrs{.padding = chance(2) ? ir::Padding::same : ir::Padding::valid};
    attrs.stride_h = attrs.stride_w = range(1, 2);
    attrs.activation = chance(3) ? ir::Activation::relu : ir::Activation::none;
    const bool valid = attrs.padding == ir::Padding::valid;
    if (valid && (in[1] < kh || in[2] < kw)) return conv(input, depthwise);
    attrs.depth_multiplier = depthwise && chance(4) ? 2 : 1;
    const int oc = depthwise ? in[3] * attrs.depth_multiplier : range(1, 40);
    const int oh = ceil_div(valid ? in[1] - kh + 1 : in[1], attrs.stride_h);
    const int ow = ceil_div(valid ? in[2] - kw + 1 : in[2], attrs.stride_w);
    const float in_scale = graph_.tensor(input).quant.scale(), filter_scale = 0.01F;
    const TensorId weights = filter(depthwise ? ir::Shape{1, kh, kw, oc} : ir::Shape{oc, kh, kw, in[3]}, filter_scale);
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
    const TensorId dims = constant<int32_t>(DType::int32, {2}, {1, depth});
    graph_.add_op(
        {.kind = OpKind::reshape, .attrs = ir::ReshapeAttrs{{1, depth}}, .inputs = {input, dims}, .outputs = {flat}});
    const int out = range(1, 40);
    const float in_scale = graph_.tensor(input).quant.scale();
    const TensorId weights = filter({out, depth}, 0.01F);
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
    return fitting[random_() % fitting.size()];
  }
  void add() {
    const TensorId a = any_image(), b = partner(a);
    const float scale = graph_.tensor(a).quant.scale() + graph_.tensor(b).quant.scale();
    const TensorId output = activation(shape(a), scale);
    graph_.add_op({.kind = OpKind::add, .attrs = ir::ActivationAttrs{}, .inputs = {a, b}, .outputs = {output}});
  }
  void concatenation() {
    const TensorId a = any_image(), b = partner(a);
    if (graph_.tensor(a).quant != graph_.tensor(b).quant) return concatenation_of(a, a);
    concatenation_of(a, b);
  }
  void concatenation_of(TensorId a, TensorId b) {
    ir::Shape s = shape(a);
    s.dims[3] *= 2;
    const TensorId output = same_quant(s, a);
    graph_.add_op(
        {.kind = OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = 3}, .inputs = {a, b}, .outputs = {output}});
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
  void unary() {
    const TensorId input = any_image();
    const OpKind kind = chance(2) ? OpKind::relu : OpKind::logistic;
    const TensorId output =
        kind == OpKind::relu ? same_quant(shape(input), input) : activation(shape(input), 1.0F / 256);
    if (kind == OpKind::logistic) graph_.tensor(output).quant.zero_points = {dtype_ == DType::int8 ? -128 : 0};
    graph_.add_op({.kind = kind, .inputs = {input}, .outputs = {output}});
  }

  std::mt19937 random_;
  ir::Graph graph_;
  DType dtype_ = DType::uint8;
  std::vector<TensorId> images_;
};

// Empty when every op agrees with its CPU kernel within one step; else what is wrong.
std::string judge(uint32_t seed, driver::Tuning tuning, const runtime::Target& target, int& compared) {
  ir::Graph graph = GraphMaker(seed).make();
  const std::string text = ir::print(graph);
  if (auto fine = ir::verify(graph); !fine.ok())
    return "the test made a bad graph: " + fine.error().message + "\n" + text;
  const std::vector<TensorId> inputs = graph.inputs;
  auto session = runtime::Session::create(
      std::move(graph), target, {.compile = {.tuning = tuning}, .allow_fallback = false, .keep_intermediates = true});
  if (!session.ok()) return session.error().message + "\n" + text;
  std::mt19937 random(seed ^ 0x5a5a);
  Bytes bytes(static_cast<size_t>((*session)->graph().tensor(inputs[0]).bytes()));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  if (auto set = (*session)->set_input(0, bytes); !set.ok()) return set.error().message;
  if (auto ran = (*session)->run(); !ran.ok()) return ran.error().message + "\n" + text;
  const auto diffs = (*session)->compare_layers();
  if (!diffs.ok()) return diffs.error().message;
  for (const runtime::LayerDiff& diff : *diffs) {
    compared += diff.compared;
    if (diff.compared && diff.max_abs_diff > 1)
      return fmt::format("{}: {} of {} elements differ, by up to {}\n{}", ir::describe_op((*session)->graph(), diff.op),
                         diff.differing, diff.elems, diff.max_abs_diff, text);
  }
  return "";
}

class RandomGraphs : public testing::TestWithParam<driver::Tuning> {};

TEST_P(RandomGraphs, AgreeWithTheCpuKernels) {
  const char* text = std::getenv("SKILLET_RANDOM_GRAPHS");
  const auto count = static_cast<uint32_t>(text ? std::atoi(text) : 300);
  const auto target = runtime::open_target("sim:a311d");
  ASSERT_TRUE(target.ok()) << target.error().message;
  int compared = 0, failures = 0;
  for (uint32_t seed = 1; seed <= count && failures < 5; ++seed) {
    const std::string problem = judge(seed, GetParam(), *target, compared);
    if (problem.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << problem;
  }
  EXPECT_GT(compared, static_cast<int>(count)) << "most ops should run on the chip";
  std::printf("%d ops compared over %u graphs\n", compared, count);
}

INSTANTIATE_TEST_SUITE_P(Tunings, RandomGraphs, testing::Values(driver::Tuning::proven, driver::Tuning::tuned),
                         [](const auto& tuning) {
                           return tuning.param == driver::Tuning::proven ? "proven" : "tuned";
                         });

}  // namespace
}  // namespace skillet
