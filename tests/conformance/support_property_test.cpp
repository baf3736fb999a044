// Whatever the driver says it can run: it compiles (proven and tuned), alone and between other ops, the CPU has a
// kernel for it, and the simulated chip's result is within the tolerance that the driver states. Random single ops with
// sizes, scales, zero points and attributes at and around every limit.
// SKILLET_PROPERTY_CASES sets how many (default 1500).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/int_math.h"
#include "random_ops.h"
#include "ref/ref.h"
#include "runtime/session.h"
#include "tolerance.h"

namespace skillet {
namespace {

using ir::DType;
using ir::OpKind;
using ir::TensorId;

constexpr std::array kKinds = {OpKind::conv_2d,
                               OpKind::depthwise_conv_2d,
                               OpKind::fully_connected,
                               OpKind::add,
                               OpKind::sub,
                               OpKind::concatenation,
                               OpKind::split,
                               OpKind::pad,
                               OpKind::reshape,
                               OpKind::transpose,
                               OpKind::relu,
                               OpKind::abs,
                               OpKind::logistic};
constexpr int kShownFailures = 10;
constexpr int64_t kMaxElems = 1 << 18;  // of a tensor: larger ones are slow and show nothing more

// One op of a kind, between its graph's inputs and outputs; sometimes with ops before and after it that force the
// other memory layout. `op` is the one under test.
struct Case {
  ir::Graph graph;
  ir::OpId op = 0;
};

class CaseMaker : RandomOps {
 public:
  explicit CaseMaker(uint32_t seed) : RandomOps(seed), surroundings_(range(0, 3)) {}

  Case make(OpKind kind) {
    dtype_ = chance(2) ? DType::uint8 : DType::int8;
    switch (kind) {
      case OpKind::conv_2d: conv(false); break;
      case OpKind::depthwise_conv_2d: conv(true); break;
      case OpKind::fully_connected: fully_connected(); break;
      case OpKind::add:
      case OpKind::sub: add(kind); break;
      case OpKind::concatenation: concatenation(); break;
      case OpKind::split: split(); break;
      case OpKind::pad: pad(); break;
      case OpKind::reshape: reshape(); break;
      case OpKind::transpose: transpose(); break;
      default: table(kind); break;
    }
    return {std::move(graph_), op_};
  }

 private:
  // ---- numbers ----

  int32_t zero_point() { return chance(2) ? any_of(std::array{0, 1, 127, 128, 254, 255}) : range(0, 255); }
  float scale() { return chance(2) ? 0.005F * static_cast<float>(range(1, 20)) : power(-100, 30); }
  int edge_size() {
    return any_of(std::array{2730, 4095, 4096, 8190, 8191, 8192, 8193, 16382, 16383, 16384, 32766, 32767, 32768, 32769,
                             65534, 65535, 65536, 70000});
  }
  // Small images; one dimension at a limit; width x channels at the limits of the layout changes.
  ir::Shape image() {
    if (chance(8)) return {1, range(1, 3), range(100, 300), range(100, 300)};
    if (chance(12)) return {1, 1, any_of(std::array{128, 256, 512}), any_of(std::array{127, 128, 129, 255, 256})};
    ir::Shape s{1, range(1, 14), range(1, 14), range(1, 20)};
    if (!chance(3)) return s;
    s = {1, range(1, 2), range(1, 2), range(1, 3)};
    s.dims[static_cast<size_t>(range(1, 3))] = edge_size();
    return s;
  }
  // Shapes of other ranks; with a batch at times.
  ir::Shape any_shape() {
    if (!chance(6)) return image();
    return any_of(std::array{ir::Shape{}, ir::Shape{7}, ir::Shape{3, 40}, ir::Shape{4, 5, 6}, ir::Shape{1, 1, 4, 5, 6},
                             ir::Shape{2, 4, 5, 6}, ir::Shape{1, 2, 4, 5, 6}});
  }
  ir::Activation activation() {
    if (chance(2)) return ir::Activation::none;
    return any_of(
        std::array{ir::Activation::relu, ir::Activation::relu, ir::Activation::relu6, ir::Activation::relu_n1_to_1});
  }

  // ---- the graph around the op ----

  TensorId input(ir::Shape shape, float s, int32_t zp) {
    const TensorId id = add_activation(shape, s, zp);
    graph_.inputs.push_back(id);
    if (surroundings_ % 2 == 0 || shape.rank() == 0) return id;
    // A concatenation of one tensor: the same values, planar.
    const TensorId planar = add_activation(shape, s, zp);
    const ir::ConcatAttrs attrs{.axis = -1};
    graph_.add_op({.kind = OpKind::concatenation, .attrs = attrs, .inputs = {id}, .outputs = {planar}});
    return planar;
  }
  void emit(ir::Op op) {
    const std::vector<TensorId> outputs = op.outputs;
    op_ = graph_.add_op(std::move(op));
    for (const TensorId id : outputs) {
      const ir::Tensor like = graph_.tensor(id);
      graph_.outputs.push_back(id);
      if (surroundings_ < 2) continue;
      // A reshape that changes nothing: the same values, NHWC.
      graph_.outputs.back() = graph_.add_tensor(like);
      graph_.add_op({.kind = OpKind::reshape,
                     .attrs = ir::ReshapeAttrs{like.shape.dims},
                     .inputs = {id, ints(like.shape.dims)},
                     .outputs = {graph_.outputs.back()}});
    }
  }

  // ---- operands of weighted ops ----

  std::vector<float> filter_scales(int channels, float s) {
    if (!chance(4)) return {s};
    std::vector<float> scales(static_cast<size_t>(channels), s);
    if (chance(3)) scales[next() % scales.size()] *= 1.5F;
    return scales;
  }
  TensorId filter(ir::Shape shape, int axis, const std::vector<float>& scales) {
    int32_t zp = dtype_ == DType::int8 ? (chance(3) ? zero_point() - 128 : 0) : zero_point();
    std::vector<int32_t> zero_points(scales.size(), zp);
    if (scales.size() > 1 && chance(4)) zero_points[next() % scales.size()] = zp == 0 ? 1 : zp / 2;
    Bytes bytes = random_bytes(static_cast<size_t>(shape.elems()));
    const int kind = range(0, 7);
    const uint8_t largest = dtype_ == DType::int8 ? 0x7f : 0xff, least = dtype_ == DType::int8 ? 0x80 : 0;
    if (kind == 0) std::fill(bytes.begin(), bytes.end(), largest);
    if (kind == 1) std::fill(bytes.begin(), bytes.end(), least);
    if (kind == 2) std::fill(bytes.begin(), bytes.end(), static_cast<uint8_t>(zp));
    return constant(dtype_, std::move(shape), bytes, {scales, zero_points, axis});
  }
  TensorId bias(int channels, float s) {
    if (chance(4)) return ir::kNoTensor;
    const int32_t reach = any_of(std::array{0, 2000, 1 << 20, 1 << 30, INT32_MAX});
    std::vector<int32_t> values(static_cast<size_t>(channels));
    for (int32_t& v : values) v = reach == 0 ? 0 : static_cast<int32_t>(uniform(-1, 1) * reach);
    if (reach == INT32_MAX) values[next() % values.size()] = chance(2) ? INT32_MAX : INT32_MIN;
    return constant(DType::int32, ir::Shape{channels}, values, {{s > 0 ? s : 1}, {0}, 0});
  }
  // A requantization scale for sums of `depth` products: useful ones, and ones about the limits.
  float requantization(int64_t depth) {
    if (!chance(3)) return 1 / (120.0F * std::sqrt(static_cast<float>(depth)));
    return chance(2) ? power(-40, 18) : any_of(std::array{-113.5F, -112.0F, -111.9F, 14.5F, 15.9F, 16.0F, 17.0F});
  }
  float output_scale(float in, float weights, int64_t depth) {
    float target = requantization(depth);
    if (target < -1 || target > 14) target = std::exp2(target);
    const float out = in * weights / target;
    return std::isnormal(out) ? out : 1.0F;
  }

  // ---- ops ----

  void conv(bool depthwise) {
    ir::Shape in = image();
    if (depthwise) in.dims[3] = std::min(in.dims[3], 1500);  // its dense form grows with the square
    ir::ConvAttrs attrs{.padding = chance(2) ? ir::Padding::same : ir::Padding::valid};
    attrs.stride_h = attrs.stride_w = range(1, 2);
    if (chance(12)) attrs.stride_w = range(1, 4);
    if (chance(12)) attrs.dilation_h = range(1, 2), attrs.dilation_w = range(1, 2);
    attrs.activation = activation();
    constexpr std::array kSizes = {1, 1, 1, 2, 3, 3, 3, 4, 5, 6, 7, 10, 11, 12, 22, 23};
    int kh = any_of(kSizes), kw = chance(3) ? any_of(kSizes) : kh;
    if (in.elems() > 10'000) kh = std::min(kh, 3), kw = std::min(kw, 3);
    if (attrs.padding == ir::Padding::valid) {
      kh = std::min(kh, (in[1] - 1) / attrs.dilation_h + 1);
      kw = std::min(kw, (in[2] - 1) / attrs.dilation_w + 1);
    }
    attrs.depth_multiplier = depthwise && chance(4) ? range(2, 3) : 1;
    const int64_t filter_elems = int64_t{kh} * kw * in[3];
    const int most = static_cast<int>(std::clamp<int64_t>(kMaxElems / std::max(filter_elems, in.elems()), 1, 40));
    int oc = depthwise ? in[3] * attrs.depth_multiplier : range(1, most);
    if (!depthwise && in.elems() < 20 && chance(6)) oc = any_of(std::array{1016, 1017, 16383, 16384});
    const float s = scale(), fs = chance(3) ? power(-20, 5) : 0.01F;
    const TensorId x = input(in, s, zero_point());
    const auto scales = filter_scales(oc, fs);
    const TensorId weights =
        filter(depthwise ? ir::Shape{1, kh, kw, oc} : ir::Shape{oc, kh, kw, in[3]}, depthwise ? 3 : 0, scales);
    const TensorId biases = bias(oc, s * fs);
    const auto out = [&](int size, int kernel, int stride, int dilation) {
      return attrs.padding == ir::Padding::same ? ceil_div(size, stride)
                                                : (size - (kernel - 1) * dilation - 1) / stride + 1;
    };
    const ir::Shape shape{1, out(in[1], kh, attrs.stride_h, attrs.dilation_h),
                          out(in[2], kw, attrs.stride_w, attrs.dilation_w), oc};
    const int64_t depth = int64_t{kh} * kw * (depthwise ? 1 : in[3]);
    const TensorId y = add_activation(shape, output_scale(s, fs, depth), zero_point());
    emit({.kind = depthwise ? OpKind::depthwise_conv_2d : OpKind::conv_2d,
          .attrs = attrs,
          .inputs = {x, weights, biases},
          .outputs = {y}});
  }

  void fully_connected() {
    const int depth = chance(6) ? any_of(std::array{8192, 16383, 16384}) : range(1, 300);
    const int out = chance(10) && depth < 20 ? any_of(std::array{16383, 16384}) : range(1, depth > 1000 ? 8 : 40);
    const int rows = chance(12) ? 2 : 1;
    const float s = scale(), fs = 0.01F;
    const ir::Shape shape = chance(2) ? ir::Shape{rows, depth} : ir::Shape{1, rows, 1, depth};
    const TensorId x = input(shape, s, zero_point());
    const TensorId weights = filter({out, depth}, 0, filter_scales(out, fs));
    const TensorId biases = bias(out, s * fs);
    TensorId y = add_activation({rows, out}, output_scale(s, fs, depth), zero_point());
    if (chance(15)) {  // the types of input and output may differ
      graph_.tensor(y).dtype = dtype_ == DType::int8 ? DType::uint8 : DType::int8;
      graph_.tensor(y).quant.zero_points = {0};
    }
    emit({.kind = OpKind::fully_connected,
          .attrs = ir::FullyConnectedAttrs{.activation = activation()},
          .inputs = {x, weights, biases},
          .outputs = {y}});
  }

  void add(OpKind kind) {
    const ir::Shape shape = any_shape();
    const float a = scale();
    const float ratio = chance(3)   ? any_of(std::array{1.0F, 0.2F, 255.0F, 510.0F, 511.0F, 1e4F, 1e-4F, 1e30F, 1e-30F})
                        : chance(2) ? power(-3, 3)
                                    : power(-12, 12);
    const float b = a * ratio;
    // The larger operand's scale over the output's.
    const float gain = chance(3)   ? any_of(std::array{1.4F, 3.0F, 3.5F, 4.0F, 16.0F, 250.0F, 65280.0F, 4.1e6F, 4.3e6F})
                       : chance(4) ? power(-114, -100)
                       : chance(2) ? power(-2, 3)
                                   : power(-4, 26);
    const float out = std::max(a, b) / gain;
    const bool usable = std::isnormal(b) && std::isnormal(out);
    const int32_t zp = zero_point();
    const TensorId x = input(shape, a, zero_point());
    const TensorId y = chance(8) ? x : input(shape, usable ? b : a, zero_point());
    const TensorId sum = add_activation(shape, usable ? out : a, chance(2) ? 0 : zp);
    emit({.kind = kind,
          .attrs = ir::ActivationAttrs{chance(3) ? activation() : ir::Activation::none},
          .inputs = {x, y},
          .outputs = {sum}});
  }

  void concatenation() {
    ir::Shape shape = image();
    const int count = range(1, 3), axis = chance(4) ? range(1, 3) : 3;
    const float s = scale();
    const int32_t zp = zero_point();
    std::vector<TensorId> parts;
    for (int i = 0; i < count; ++i) parts.push_back(input(shape, s, zp));
    shape.dims[static_cast<size_t>(axis)] *= count;
    const bool same = dtype_ == DType::int8 || !chance(4);  // others must be alike for TFLite too
    const TensorId y = add_activation(shape, same ? s : s * 2, zp);
    emit({.kind = OpKind::concatenation,
          .attrs = ir::ConcatAttrs{.axis = chance(2) ? axis : axis - 4},
          .inputs = parts,
          .outputs = {y}});
  }

  void split() {
    ir::Shape shape = any_shape();
    const int rank = shape.rank();
    if (rank == 0) return split();
    const int axis = chance(5) ? range(0, rank - 1) : rank - 1;
    const int32_t size = shape[axis];
    int count = size % 3 == 0 && chance(2) ? 3 : size % 2 == 0 ? 2 : 1;
    const float s = scale();
    const int32_t zp = zero_point();
    const TensorId where = constant<int32_t>(DType::int32, {}, {axis});
    const TensorId x = input(shape, s, zp);
    shape.dims[static_cast<size_t>(axis)] /= count;
    std::vector<TensorId> parts;
    for (int i = 0; i < count; ++i) parts.push_back(add_activation(shape, chance(20) ? s * 2 : s, zp));
    emit({.kind = OpKind::split, .attrs = ir::SplitAttrs{count}, .inputs = {where, x}, .outputs = parts});
  }

  void pad() {
    ir::Shape shape = any_shape();
    if (shape.rank() == 0) return pad();
    std::vector<int32_t> amounts(static_cast<size_t>(2 * shape.rank()), 0);
    for (int32_t& a : amounts) a = chance(2) ? range(0, chance(6) ? 4 : 2) : 0;
    if (shape.rank() > 3 && !chance(10)) std::fill(amounts.begin(), amounts.end() - 6, 0);
    const float s = scale();
    const int32_t zp = zero_point();
    const TensorId x = input(shape, s, zp);
    const TensorId margins = constant(DType::int32, {shape.rank(), 2}, amounts);
    for (size_t d = 0; d < shape.dims.size(); ++d) shape.dims[d] += amounts[2 * d] + amounts[2 * d + 1];
    emit({.kind = OpKind::pad,
          .inputs = {x, margins},
          .outputs = {add_activation(shape, s, chance(10) ? 255 - zp : zp)}});
  }

  void reshape() {
    const ir::Shape shape = any_shape();
    const auto elems = static_cast<int32_t>(shape.elems());
    const int32_t part = elems % 3 == 0 ? 3 : elems % 2 == 0 ? 2 : 1;
    const ir::Shape to = any_of(std::array{ir::Shape{elems}, ir::Shape{1, elems}, ir::Shape{1, 1, part, elems / part},
                                           ir::Shape{part, elems / part}, ir::Shape{part, elems / part, 1, 1}});
    const float s = scale();
    const int32_t zp = zero_point();
    const TensorId x = input(shape, s, zp);
    emit({.kind = OpKind::reshape,
          .attrs = ir::ReshapeAttrs{to.dims},
          .inputs = {x, ints(to.dims)},
          .outputs = {add_activation(to, s, chance(10) ? 255 - zp : zp)}});
  }

  void transpose() {
    const ir::Shape shape = image();
    const auto order = any_of(
        std::array{std::array{0, 3, 1, 2}, std::array{0, 2, 3, 1}, std::array{0, 2, 1, 3}, std::array{0, 1, 2, 3}});
    ir::Shape to = shape;
    for (size_t d = 0; d < 4; ++d) to.dims[d] = shape.dims[static_cast<size_t>(order[d])];
    const float s = scale();
    const int32_t zp = zero_point();
    const TensorId x = input(shape, s, zp);
    emit({.kind = OpKind::transpose,
          .inputs = {x, ints({order.begin(), order.end()})},
          .outputs = {add_activation(to, s, zp)}});
  }

  void table(OpKind kind) {
    const ir::Shape shape = any_shape();
    const float s = scale();
    float out = s;
    if (kind == OpKind::logistic) {
      out = chance(2) ? 1.0F / 256 : power(-16, chance(4) ? 70 : 1);
    } else if (!chance(3)) {
      out = s / (chance(3) ? power(-66, -60) : chance(2) ? power(20, 26) : power(-10, 10));
    }
    const TensorId x = input(shape, s, zero_point());
    emit({.kind = kind, .inputs = {x}, .outputs = {add_activation(shape, std::isnormal(out) ? out : s, zero_point())}});
  }

  int surroundings_;  // bit 0: planar input; bit 1: NHWC output
  ir::OpId op_ = 0;
};

struct Count {
  int taken = 0, refused = 0;
};

Bytes input_bytes(size_t count, std::mt19937& random) {
  Bytes bytes(count);
  const uint32_t kind = static_cast<uint32_t>(random()) % 4;
  for (uint8_t& b : bytes) {
    const auto r = static_cast<uint32_t>(random());
    b = kind == 0 ? 0 : kind == 1 ? 255 : kind == 2 ? (r & 1 ? 255 : 0) : static_cast<uint8_t>(r);
  }
  return bytes;
}

// Empty when all is well with the op on the chip, else what is wrong.
std::string judge_on_chip(const Case& one, driver::Tuning tuning, const runtime::Target& target, std::mt19937& random) {
  auto session = runtime::Session::create(
      one.graph, target, {.compile = {.tuning = tuning}, .allow_fallback = false, .keep_intermediates = true});
  if (!session.ok()) return session.error().message;
  for (size_t i = 0; i < one.graph.inputs.size(); ++i) {
    const auto bytes = input_bytes(static_cast<size_t>(one.graph.tensor(one.graph.inputs[i]).bytes()), random);
    if (auto set = (*session)->set_input(i, bytes); !set.ok()) return set.error().message;
  }
  if (auto ran = (*session)->run(); !ran.ok()) return ran.error().message;
  const auto diffs = (*session)->compare_layers();
  if (!diffs.ok()) return diffs.error().message;
  bool compared = false;
  for (const runtime::LayerDiff& diff : *diffs) {
    const ir::Op& op = (*session)->graph().op(diff.op);
    compared |= diff.op == one.op && diff.compared;
    if (diff.compared && diff.max_abs_diff > tolerance_of(target.chip, op.kind))
      return fmt::format("{}: {} of {} elements differ, by up to {}", ir::describe_op((*session)->graph(), diff.op),
                         diff.differing, diff.elems, diff.max_abs_diff);
  }
  return compared ? "" : "the op's output was not compared";
}

std::string judge(uint32_t seed, const runtime::Target& target, std::map<OpKind, Count>& counts) {
  const OpKind kind = kKinds[seed % kKinds.size()];
  const Case one = CaseMaker(seed).make(kind);
  const std::string text = "\n" + ir::print(one.graph);
  if (auto fine = ir::verify(one.graph); !fine.ok()) return "the test made a bad graph: " + fine.error().message + text;
  const driver::Support support = target.driver->supports(target.chip, one.graph, one.op);
  if (!support.ok) {
    ++counts[kind].refused;
    return support.reason.empty() ? "refused without a reason" + text : "";
  }
  ++counts[kind].taken;
  if (auto kernel = ref::prepare(one.graph, one.op); !kernel.ok())
    return "taken, but the CPU cannot: " + kernel.error().message + text;
  std::mt19937 random(seed ^ 0x5a5a);
  for (const auto tuning : {driver::Tuning::proven, driver::Tuning::tuned}) {
    const std::string problem = judge_on_chip(one, tuning, target, random);
    if (!problem.empty()) return problem + text;
  }
  return "";
}

// Kinds that a chip takes at all.
bool is_known(std::string_view chip, OpKind kind) {
  if (chip == "rk3588") return kind != OpKind::transpose;
  return kind != OpKind::sub || chip == "imx8mp";
}

// Of those it takes more than so many are met: reshaping that keeps channels is rare here.
int least_taken(std::string_view chip, OpKind kind) { return chip == "rk3588" && kind == OpKind::reshape ? 0 : 5; }

class SupportProperty : public testing::TestWithParam<const char*> {};  // a simulated chip

TEST_P(SupportProperty, WhatIsTakenCompilesAndIsWithinTolerance) {
  const char* text = std::getenv("SKILLET_PROPERTY_CASES");
  const auto count = static_cast<uint32_t>(text ? std::atoi(text) : 1500);
  const char* first_text = std::getenv("SKILLET_PROPERTY_FIRST");
  const auto first = static_cast<uint32_t>(first_text ? std::atoi(first_text) : 1);
  const auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
  ASSERT_TRUE(target.ok()) << target.error().message;
  std::map<OpKind, Count> counts;
  int failures = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const std::string problem = judge(seed, *target, counts);
    if (problem.empty()) continue;
    if (++failures <= kShownFailures) ADD_FAILURE() << "seed " << seed << ": " << problem;
  }
  std::printf("%d of %u cases failed\n", failures, count);
  for (const OpKind kind : kKinds) {
    std::printf("%-18s %5d taken %5d refused\n", std::string(ir::op_kind_name(kind)).c_str(), counts[kind].taken,
                counts[kind].refused);
    // Else the test looks at one side of the limits only.
    if (failures == 0 && count >= 1500) {
      EXPECT_EQ(counts[kind].taken > least_taken(GetParam(), kind), is_known(GetParam(), kind))
          << ir::op_kind_name(kind);
      EXPECT_GT(counts[kind].refused, 2) << ir::op_kind_name(kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, SupportProperty, testing::Values("a311d", "imx8mp", "rk3588"));

}  // namespace
}  // namespace skillet
