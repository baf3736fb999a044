// Kernels against plain loops from the definition, with random shapes; refusals; the interpreter.
#include "graph/ref/ref.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/fixed_point.h"
#include "graph/ref/hard_swish.h"
#include "graph/ref/softmax.h"
#include "graph/ref/weighted.h"

namespace skillet::ref {
namespace {

using ir::DType;

ir::Tensor tensor(DType dtype, ir::Shape shape, float scale, int32_t zero_point) {
  return {.name = "t", .dtype = dtype, .shape = std::move(shape), .quant = {{scale}, {zero_point}, 0}};
}

ir::Tensor constant(ir::Tensor from, std::mt19937& random) {
  Bytes bytes(static_cast<size_t>(from.bytes()));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(random());
  if (from.dtype == DType::int32) {
    for (size_t i = 0; i < bytes.size(); i += 4) store_le(&bytes[i], static_cast<int32_t>(random() % 20001) - 10000);
  }
  set_constant(from, std::move(bytes));
  return from;
}

// A graph of one op; its first inputs are computed, and its constants come with the tensors.
ir::Graph one_op(ir::OpKind kind, ir::Attrs attrs, std::vector<ir::Tensor> inputs, ir::Tensor output) {
  ir::Graph graph;
  ir::Op op{.kind = kind, .attrs = std::move(attrs)};
  for (ir::Tensor& input : inputs) {
    const bool computed = !input.is_constant();
    op.inputs.push_back(graph.add_tensor(std::move(input)));
    if (computed) graph.inputs.push_back(op.inputs.back());
  }
  op.outputs = graph.outputs = {graph.add_tensor(std::move(output))};
  graph.add_op(std::move(op));
  return graph;
}

void randomize(std::span<uint8_t> bytes, std::mt19937& random) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
}

int32_t value(const ir::Tensor& t, std::span<const uint8_t> bytes, size_t i) {
  return (t.dtype == DType::int8 ? static_cast<int8_t>(bytes[i]) : bytes[i]) - t.quant.zero_point();
}

// One random convolution, depthwise or not.
struct ConvCase {
  ir::Graph graph;
  bool depthwise = false;
};

int32_t output_size(ir::Padding padding, int32_t in, int32_t kernel, int32_t stride, int32_t dilation) {
  const int32_t covered = padding == ir::Padding::same ? 1 : (kernel - 1) * dilation + 1;
  return (in - covered) / stride + 1;
}

ConvCase random_conv(std::mt19937& random, bool depthwise) {
  const auto pick = [&](int32_t low, int32_t high) {
    return low + static_cast<int32_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  ir::ConvAttrs attrs{.padding = pick(0, 1) == 0 ? ir::Padding::same : ir::Padding::valid,
                      .stride_h = pick(1, 3),
                      .stride_w = pick(1, 3),
                      .dilation_h = pick(1, 2),
                      .dilation_w = pick(1, 2),
                      .depth_multiplier = depthwise ? pick(1, 3) : 1,
                      .activation = pick(0, 1) == 0 ? ir::Activation::none : ir::Activation::relu6};
  const DType dtype = pick(0, 1) == 0 ? DType::uint8 : DType::int8;
  const bool is_u8 = dtype == DType::uint8;
  const int32_t in_c = pick(1, 40), kh = pick(1, 4), kw = pick(1, 4);
  const int32_t out_c = depthwise ? in_c * attrs.depth_multiplier : pick(1, 40);
  const ir::Shape in{pick(1, 2), pick(7, 14), pick(0, 5) == 0 ? 47 : pick(7, 14), in_c};  // 47: more than one strip
  const ir::Shape out{in[0], output_size(attrs.padding, in[1], kh, attrs.stride_h, attrs.dilation_h),
                      output_size(attrs.padding, in[2], kw, attrs.stride_w, attrs.dilation_w), out_c};
  const ir::Shape filter_shape = depthwise ? ir::Shape{1, kh, kw, out_c} : ir::Shape{out_c, kh, kw, in_c};
  const int32_t filter_zero_point = is_u8 ? pick(0, 255) : pick(0, 1) == 0 ? 0 : pick(-128, 127);
  ir::Tensor filter = constant(tensor(dtype, filter_shape, 0.013F, filter_zero_point), random);
  if (pick(0, 1) == 0 && out_c > 1) {
    // Per channel: any scales for int8, equal ones for uint8; one zero point.
    const auto channels = static_cast<size_t>(out_c);
    filter.quant = {{}, std::vector<int32_t>(channels, filter_zero_point), depthwise ? 3 : 0};
    for (size_t i = 0; i < channels; ++i)
      filter.quant.scales.push_back(is_u8 ? 0.013F : 0.001F * static_cast<float>(pick(1, 30)));
  }
  const int32_t zero_point = is_u8 ? 0 : -128;
  std::vector<ir::Tensor> inputs = {tensor(dtype, in, 0.02F, zero_point + pick(0, 255)), std::move(filter)};
  if (pick(0, 3) > 0) inputs.push_back(constant(tensor(DType::int32, {out_c}, 0.00026F, 0), random));
  return {one_op(depthwise ? ir::OpKind::depthwise_conv_2d : ir::OpKind::conv_2d, attrs, std::move(inputs),
                 tensor(dtype, out, 0.3F, zero_point + pick(0, 255))),
          depthwise};
}

// The definition: seven loops, one multiplication each.
int32_t plain_sum(const ConvCase& conv, std::span<const uint8_t> image, const ir::Shape& at) {
  const ir::Tensor &in = conv.graph.tensor(0), &filter = conv.graph.tensor(1), &out = conv.graph.tensors.back();
  const auto& attrs = conv.graph.op(0).as<ir::ConvAttrs>();
  const int32_t kh = filter.shape[1], kw = filter.shape[2], channels = in.shape[3];
  const auto pad = [&](int i, int32_t kernel, int32_t stride, int32_t dilation) {
    const int32_t total = (out.shape[i] - 1) * stride + (kernel - 1) * dilation + 1 - in.shape[i];
    return attrs.padding == ir::Padding::same ? std::max(total, 0) / 2 : 0;
  };
  int32_t sum = 0;
  for (int32_t ky = 0; ky < kh; ++ky) {
    for (int32_t kx = 0; kx < kw; ++kx) {
      const int32_t y = at[1] * attrs.stride_h - pad(1, kh, attrs.stride_h, attrs.dilation_h) + ky * attrs.dilation_h;
      const int32_t x = at[2] * attrs.stride_w - pad(2, kw, attrs.stride_w, attrs.dilation_w) + kx * attrs.dilation_w;
      if (y < 0 || y >= in.shape[1] || x < 0 || x >= in.shape[2]) continue;
      const int32_t pixel = ((at[0] * in.shape[1] + y) * in.shape[2] + x) * channels;
      for (int32_t c = 0; c < (conv.depthwise ? 1 : channels); ++c) {
        const int32_t from = conv.depthwise ? at[3] / attrs.depth_multiplier : c;
        const int32_t weight =
            conv.depthwise ? (ky * kw + kx) * out.shape[3] + at[3] : ((at[3] * kh + ky) * kw + kx) * channels + c;
        sum += value(in, image, static_cast<size_t>(pixel + from)) *
               value(filter, filter.data, static_cast<size_t>(weight));
      }
    }
  }
  return sum;
}

int32_t plain_output(const ConvCase& conv, int32_t sum, int32_t channel) {
  const ir::Tensor &in = conv.graph.tensor(0), &filter = conv.graph.tensor(1), &out = conv.graph.tensors.back();
  const auto c = static_cast<size_t>(channel);
  if (conv.graph.op(0).inputs.size() > 2) sum += conv.graph.tensor(2).values<int32_t>()[c];
  const float scale = filter.quant.scales[filter.quant.per_channel() ? c : 0];
  const double product = in.dtype == DType::uint8 ? static_cast<double>(in.quant.scale() * scale)
                                                  : static_cast<double>(in.quant.scale()) * static_cast<double>(scale);
  const auto by = quantize_multiplier(product / static_cast<double>(out.quant.scale()));
  const int32_t zero_point = out.quant.zero_point();
  const int32_t type_min = out.dtype == DType::int8 ? -128 : 0, type_max = type_min + 255;
  const bool relu6 = conv.graph.op(0).as<ir::ConvAttrs>().activation == ir::Activation::relu6;
  const int32_t low = relu6 ? std::max(type_min, zero_point) : type_min;
  const int32_t high = relu6 ? std::min(type_max, zero_point + 20) : type_max;  // 6 / 0.3
  return std::clamp(multiply_by_quantized_multiplier(sum, by) + zero_point, low, high);
}

void check_conv(std::mt19937& random, bool depthwise) {
  const ConvCase conv = random_conv(random, depthwise);
  auto interpreter = Interpreter::create(conv.graph);
  ASSERT_TRUE(interpreter.ok()) << interpreter.error().message;
  const auto image = interpreter->tensor(0);
  randomize(image, random);
  ASSERT_TRUE(interpreter->run().ok());
  const ir::Tensor& out = conv.graph.tensors.back();
  const auto got = interpreter->tensor(conv.graph.outputs[0]);
  size_t i = 0;
  for (int32_t b = 0; b < out.shape[0]; ++b) {
    for (int32_t y = 0; y < out.shape[1]; ++y) {
      for (int32_t x = 0; x < out.shape[2]; ++x) {
        for (int32_t c = 0; c < out.shape[3]; ++c, ++i) {
          const int32_t expected = plain_output(conv, plain_sum(conv, image, {b, y, x, c}), c);
          ASSERT_EQ(value(out, got, i) + out.quant.zero_point(), expected)
              << out.shape.to_string() << " at " << b << "," << y << "," << x << "," << c;
        }
      }
    }
  }
  if (depthwise) return;
  // The kernel of other CPUs, in case this one has dot products of bytes.
  Bytes wide(got.size());
  std::vector<std::span<uint8_t>> tensors;
  for (size_t id = 0; id < conv.graph.tensors.size(); ++id)
    tensors.push_back(interpreter->tensor(static_cast<ir::TensorId>(id)));
  tensors[static_cast<size_t>(conv.graph.outputs[0])] = wide;
  auto kernel = prepare_wide_layer(Context(conv.graph, 0));
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  ASSERT_TRUE((*kernel)->run(tensors).ok());
  EXPECT_TRUE(std::ranges::equal(wide, got)) << out.shape.to_string();
}

TEST(Ref, Conv2dEqualsPlainLoop) {
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) check_conv(random, false);
}

TEST(Ref, DepthwiseConv2dEqualsPlainLoop) {
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) check_conv(random, true);
}

// A grouped convolution equals one convolution per group.
TEST(Ref, GroupedConvolution) {
  std::mt19937 random(3);
  const ir::ConvAttrs attrs{.padding = ir::Padding::valid};
  ir::Graph grouped = one_op(
      ir::OpKind::conv_2d, attrs,
      {tensor(DType::int8, {1, 5, 5, 6}, 0.02F, 3), constant(tensor(DType::int8, {8, 3, 3, 3}, 0.01F, 0), random)},
      tensor(DType::int8, {1, 3, 3, 8}, 0.3F, -5));
  auto whole = Interpreter::create(grouped);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  randomize(whole->tensor(0), random);
  ASSERT_TRUE(whole->run().ok());
  for (size_t g = 0; g < 2; ++g) {
    ir::Tensor filter = tensor(DType::int8, {4, 3, 3, 3}, 0.01F, 0);
    const auto half = grouped.tensor(1).data.subspan(g * 108, 108);
    set_constant(filter, Bytes(half.begin(), half.end()));
    const ir::Graph part = one_op(ir::OpKind::conv_2d, attrs, {tensor(DType::int8, {1, 5, 5, 3}, 0.02F, 3), filter},
                                  tensor(DType::int8, {1, 3, 3, 4}, 0.3F, -5));
    auto interpreter = Interpreter::create(part);
    ASSERT_TRUE(interpreter.ok()) << interpreter.error().message;
    for (size_t i = 0; i < 75; ++i) interpreter->tensor(0)[i] = whole->tensor(0)[i / 3 * 6 + g * 3 + i % 3];
    ASSERT_TRUE(interpreter->run().ok());
    for (size_t i = 0; i < 36; ++i) ASSERT_EQ(whole->tensor(2)[i / 4 * 8 + g * 4 + i % 4], interpreter->tensor(2)[i]);
  }
}

// With scales whose product is exact the two round alike, for any zero point and form of the filter's scales.
TEST(Ref, FullyConnectedEqualsPointwiseConvolution) {
  std::mt19937 random(6);
  const std::vector<float> one(1, 0.015625F), four(4, 0.015625F);
  for (const auto& scales : {one, four}) {
    for (const auto& [dtype, zero_point] : {std::pair{DType::uint8, 131}, {DType::int8, 0}, {DType::int8, -7}}) {
      ir::Tensor filter = constant(tensor(dtype, {4, 9}, 1, 0), random);
      filter.quant = {scales, std::vector<int32_t>(scales.size(), zero_point), 0};
      ir::Tensor wide = filter;
      wide.shape = {4, 1, 1, 9};
      const ir::Graph rows = one_op(ir::OpKind::fully_connected, ir::FullyConnectedAttrs{},
                                    {tensor(dtype, {5, 9}, 0.5F, 3), filter}, tensor(dtype, {5, 4}, 1, 5));
      const ir::Graph pixels = one_op(ir::OpKind::conv_2d, ir::ConvAttrs{},
                                      {tensor(dtype, {1, 1, 5, 9}, 0.5F, 3), wide}, tensor(dtype, {1, 1, 5, 4}, 1, 5));
      auto a = Interpreter::create(rows), b = Interpreter::create(pixels);
      ASSERT_TRUE(a.ok() && b.ok()) << (a.ok() ? b : a).error().message;
      randomize(a->tensor(0), random);
      std::ranges::copy(a->tensor(0), b->tensor(0).begin());
      ASSERT_TRUE(a->run().ok() && b->run().ok());
      EXPECT_TRUE(std::ranges::equal(a->tensor(2), b->tensor(2))) << dtype_name(dtype) << ", zero point " << zero_point;
    }
  }
}

TEST(Ref, RefusalNamesTheOp) {
  struct Case {
    DType dtype;
    ir::Quant quant;
    const char* reason;
  };
  const Case cases[] = {
      {DType::int8, {{0.1F, 0.1F, 0.1F}, {7, 7, 6}, 0}, "filter with a zero point per channel"},
      {DType::uint8, {{0.1F, 0.1F, 0.1F}, {7, 7, 6}, 0}, "filter with a zero point per channel"},
      {DType::uint8, {{0.1F, 0.2F, 0.1F}, {7, 7, 7}, 0}, "uint8 filter with a scale per channel"},
  };
  std::mt19937 random(4);
  for (const Case& c : cases) {
    ir::Tensor filter = constant(tensor(c.dtype, {3, 1, 1, 2}, 0.1F, 7), random);
    filter.quant = c.quant;
    const ir::Graph graph =
        one_op(ir::OpKind::conv_2d, ir::ConvAttrs{}, {tensor(c.dtype, {1, 4, 4, 2}, 0.1F, 0), filter},
               tensor(c.dtype, {1, 4, 4, 3}, 0.1F, 0));
    const auto interpreter = Interpreter::create(graph);
    ASSERT_FALSE(interpreter.ok()) << c.reason;
    EXPECT_EQ(interpreter.error().code, ErrorCode::unsupported);
    EXPECT_EQ(interpreter.error().message, std::string("op 0 CONV_2D -> 't': ") + c.reason);
  }
}

TEST(Ref, UnknownOpIsRefused) {
  ir::Graph graph =
      one_op(ir::OpKind::opaque, ir::OpaqueAttrs{}, {tensor(DType::int8, {4}, 1, 0)}, tensor(DType::int8, {4}, 1, 0));
  graph.ops[0].opaque_name = "FROBNICATE";
  const auto interpreter = Interpreter::create(graph);
  ASSERT_FALSE(interpreter.ok());
  EXPECT_EQ(interpreter.error().message, "op 0 FROBNICATE -> 't': no CPU kernel for FROBNICATE");
}

TEST(Ref, HugeTensorsAreRefused) {
  ir::Graph graph;
  graph.inputs = {graph.add_tensor(tensor(DType::int8, {1 << 30}, 1, 0))};
  for (ir::TensorId i = 0; i < 4; ++i) {
    ir::Op op{.kind = ir::OpKind::relu, .attrs = ir::NoAttrs{}, .inputs = {i}};
    op.outputs = {graph.add_tensor(tensor(DType::int8, {1 << 30}, 1, 0))};
    graph.add_op(std::move(op));
  }
  const auto interpreter = Interpreter::create(graph);
  ASSERT_FALSE(interpreter.ok());
  EXPECT_EQ(interpreter.error().message, "the computed tensors need 5368709120 bytes, the limit is 4294967296");
}

// The last bit depends on this: TensorFlow Lite multiplies by the inverse of the scale, in float; scales may differ.
TEST(Ref, UnaryOpsRoundAsTensorFlowLite) {
  constexpr float kScale = 0.00919117592F;  // half of it times its inverse is just below a half
  struct Row {
    ir::OpKind kind;
    float in_scale, out_scale;
    int8_t value, expected;
  };
  const Row rows[] = {{ir::OpKind::elu, kScale / 2, kScale, 1, 0},
                      {ir::OpKind::elu, kScale, kScale, 1, 1},
                      {ir::OpKind::elu, 0.5F, 1.0F, 1, 1},
                      {ir::OpKind::elu, 0.5F, 1.0F, 5, 3},
                      {ir::OpKind::log, 0.5F, 1.0F, 0, -128},
                      {ir::OpKind::log, 0.5F, 1.0F, -3, -128},
                      {ir::OpKind::log, 0.5F, 1.0F, 6, 1},
                      {ir::OpKind::abs, 0.5F, 0.25F, -3, 6},
                      {ir::OpKind::abs, 0.25F, 0.5F, -4, 2},
                      {ir::OpKind::abs, 0.5F, 0.5F, -3, 3},
                      {ir::OpKind::abs, 0.5F, 0.5F, -128, 127},
                      {ir::OpKind::relu6, 0.0625F, 0.0625F, 100, 96},
                      {ir::OpKind::relu, 0.5F, 0.25F, 70, 127},
                      {ir::OpKind::tanh, 0.5F, 0.0078125F, 127, 127},
                      {ir::OpKind::tanh, 0.5F, 0.0078125F, -127, -128},
                      {ir::OpKind::logistic, 0.5F, 0.00390625F, 0, 127},
                      {ir::OpKind::sqrt, 0.25F, 0.5F, 64, 8},
                      {ir::OpKind::sqrt, 1.0F, 1.0F, 8, 2},  // cut off
                      {ir::OpKind::sqrt, 1.0F, 1.0F, -5, 0}};
  for (const Row& row : rows) {
    auto interpreter = Interpreter::create(one_op(row.kind, ir::NoAttrs{}, {tensor(DType::int8, {1}, row.in_scale, 0)},
                                                  tensor(DType::int8, {1}, row.out_scale, 0)));
    ASSERT_TRUE(interpreter.ok()) << interpreter.error().message;
    interpreter->tensor(0)[0] = static_cast<uint8_t>(row.value);
    ASSERT_TRUE(interpreter->run().ok());
    EXPECT_EQ(static_cast<int8_t>(interpreter->tensor(1)[0]), row.expected)
        << ir::op_kind_name(row.kind) << " of " << int{row.value} << " at " << row.in_scale;
  }
}

// Outputs of a graph for bytes that count up.
Bytes outputs_of(const ir::Graph& graph) {
  EXPECT_TRUE(ir::verify(graph).ok()) << ir::verify(graph).error().message;
  auto interpreter = Interpreter::create(graph);
  if (!interpreter.ok()) return {};
  uint8_t next = 1;
  for (const ir::TensorId input : graph.inputs) {
    for (uint8_t& byte : interpreter->tensor(input)) byte = next++;
  }
  EXPECT_TRUE(interpreter->run().ok());
  Bytes all;
  for (const ir::TensorId output : graph.outputs)
    std::ranges::copy(interpreter->tensor(output), std::back_inserter(all));
  return all;
}

ir::TensorId add_constant(ir::Graph& graph, const std::vector<int32_t>& values) {
  ir::Tensor made{.name = "c", .dtype = DType::int32, .shape = {static_cast<int32_t>(values.size())}};
  Bytes bytes(4 * values.size());
  for (size_t i = 0; i < values.size(); ++i) store_le(&bytes[4 * i], values[i]);
  set_constant(made, std::move(bytes));
  return graph.add_tensor(std::move(made));
}

// Two halves of 2x4x6 along its axis `place`, joined or split; PACK and UNPACK add or remove an axis of 2 there.
ir::Graph along(ir::OpKind kind, size_t place, int32_t axis) {
  using ir::OpKind;
  ir::Shape whole{2, 4, 6}, part = whole;
  if (kind == OpKind::pack || kind == OpKind::unpack) {
    whole.dims[place] = 2;
    part = whole;
    part.dims.erase(part.dims.begin() + static_cast<std::ptrdiff_t>(place));
  } else {
    part.dims[place] /= 2;
  }
  const bool joins = kind == OpKind::concatenation || kind == OpKind::pack;
  ir::Graph graph;
  const std::vector<ir::TensorId> one = {graph.add_tensor(tensor(DType::uint8, whole, 1, 0))};
  const std::vector<ir::TensorId> two = {graph.add_tensor(tensor(DType::uint8, part, 1, 0)),
                                         graph.add_tensor(tensor(DType::uint8, part, 1, 0))};
  graph.inputs = joins ? two : one;
  graph.outputs = joins ? one : two;
  ir::Op op{.kind = kind, .inputs = graph.inputs, .outputs = graph.outputs};
  if (kind == OpKind::concatenation) op.attrs = ir::ConcatAttrs{.axis = axis};
  if (kind == OpKind::pack) op.attrs = ir::PackAttrs{.axis = axis, .count = 2};
  if (kind == OpKind::unpack) op.attrs = ir::UnpackAttrs{.axis = axis, .count = 2};
  if (kind == OpKind::split || kind == OpKind::split_v) op.attrs = ir::SplitAttrs{2};
  if (kind == OpKind::split) op.inputs = {add_constant(graph, {axis}), one[0]};
  if (kind == OpKind::split_v)
    op.inputs = {one[0], add_constant(graph, {part.dims[place], part.dims[place]}), add_constant(graph, {axis})};
  graph.add_op(std::move(op));
  return graph;
}

TEST(Ref, AxesMayBeCountedFromTheEnd) {
  using ir::OpKind;
  for (const OpKind kind : {OpKind::concatenation, OpKind::pack, OpKind::unpack, OpKind::split, OpKind::split_v}) {
    for (int32_t axis = 0; axis < 3; ++axis) {
      const auto place = static_cast<size_t>(axis);
      const Bytes expected = outputs_of(along(kind, place, axis));
      ASSERT_FALSE(expected.empty());
      EXPECT_EQ(outputs_of(along(kind, place, axis - 3)), expected) << ir::op_kind_name(kind) << " along " << axis - 3;
    }
  }
}

TEST(Ref, QuantizesWhatIsNoNumber) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<float, int> rows[] = {
      {kNan, -128}, {-kInf, -128}, {kInf, 127}, {-1e30F, -128},
      {1e30F, 127}, {0.25F, 6},    {-0.25F, 4}, {0.2F, 5}};  // steps of 0.5 from 5, halves away from 0
  const ir::Tensor real{.name = "r", .dtype = DType::float32, .shape = {1}};
  auto interpreter =
      Interpreter::create(one_op(ir::OpKind::quantize, ir::NoAttrs{}, {real}, tensor(DType::int8, {1}, 0.5F, 5)));
  ASSERT_TRUE(interpreter.ok()) << interpreter.error().message;
  for (const auto& [value, expected] : rows) {
    store_le(interpreter->tensor(0).data(), value);
    ASSERT_TRUE(interpreter->run().ok());
    EXPECT_EQ(static_cast<int8_t>(interpreter->tensor(1)[0]), expected) << value;
  }
}

// As in TensorFlow Lite's kernel: the zero point of the output if the input has a scale, else 0.
TEST(Ref, PadsWithZeroWhatHasNoScale) {
  for (const bool has_scale : {true, false}) {
    ir::Tensor in = tensor(DType::int8, {1, 1}, 0.5F, 5), out = tensor(DType::int8, {1, 3}, 0.5F, -43);
    if (!has_scale) in.quant = {};
    ir::Graph graph;
    const auto input = graph.add_tensor(in);
    const auto margins = add_constant(graph, {0, 0, 1, 1});
    graph.tensor(margins).shape = {2, 2};
    const auto output = graph.add_tensor(out);
    graph.inputs = {input}, graph.outputs = {output};
    graph.add_op({.kind = ir::OpKind::pad,
                  .attrs = ir::default_attrs(ir::OpKind::pad),
                  .inputs = {input, margins},
                  .outputs = {output}});
    auto interpreter = Interpreter::create(graph);
    ASSERT_TRUE(interpreter.ok()) << interpreter.error().message;
    interpreter->tensor(input)[0] = 1;
    ASSERT_TRUE(interpreter->run().ok());
    const auto zero = static_cast<uint8_t>(has_scale ? -43 : 0);
    const auto values = interpreter->tensor(output);
    EXPECT_EQ(Bytes(values.begin(), values.end()), (Bytes{zero, 1, zero})) << has_scale;
  }
}

TEST(Ref, GatherNdChecksItsIndices) {
  ir::Tensor indices{.name = "i", .dtype = DType::int32, .shape = {2, 1}};
  ir::Graph graph = one_op(ir::OpKind::gather_nd, ir::NoAttrs{}, {tensor(DType::int8, {3, 2}, 1, 0), indices},
                           tensor(DType::int8, {2, 2}, 1, 0));
  auto interpreter = Interpreter::create(graph);
  ASSERT_TRUE(interpreter.ok()) << interpreter.error().message;
  for (size_t i = 0; i < 6; ++i) interpreter->tensor(0)[i] = static_cast<uint8_t>(10 + i);
  store_le<int32_t>(interpreter->tensor(1).data(), 2);
  store_le<int32_t>(interpreter->tensor(1).data() + 4, 0);
  ASSERT_TRUE(interpreter->run().ok());
  const auto out = interpreter->tensor(2);
  EXPECT_EQ(Bytes(out.begin(), out.end()), (Bytes{14, 15, 10, 11}));
  for (int32_t bad : {3, -1, INT32_MIN}) {
    store_le<int32_t>(interpreter->tensor(1).data(), bad);
    EXPECT_FALSE(interpreter->run().ok());
  }
}

TEST(Ref, ConstantsAreNotCopied) {
  std::mt19937 random(5);
  const ir::Graph graph =
      one_op(ir::OpKind::add, ir::ActivationAttrs{},
             {tensor(DType::int8, {4}, 0.1F, 0), constant(tensor(DType::int8, {4}, 0.1F, 0), random)},
             tensor(DType::int8, {4}, 0.1F, 0));
  auto interpreter = Interpreter::create(graph);
  ASSERT_TRUE(interpreter.ok());
  EXPECT_EQ(interpreter->tensor(1).data(), graph.tensor(1).data.data());
}

TEST(Softmax, ExpIsCloseToTheRealOne) {
  for (int32_t x = 0; x > -(1 << 30); x -= 1234567) {
    const double real = std::exp(x / static_cast<double>(1 << 26));
    ASSERT_NEAR(exp_on_negative_values(x) / 2147483648.0, real, 1e-6);
  }
  EXPECT_EQ(exp_on_negative_values(0), INT32_MAX);
}

TEST(Softmax, ReciprocalIsCloseToTheRealOne) {
  for (int64_t x = 1 << 19; x < INT32_MAX; x += 9876543) {
    const Reciprocal r = reciprocal(static_cast<int32_t>(x), 12);
    const double real = 1 / (static_cast<double>(x) / (1 << 19));
    ASSERT_NEAR(std::ldexp(r.value / 2147483648.0, -r.num_bits_over_unit), real, real * 1e-7);
  }
}

TEST(Softmax, TakesScalesThatItsFixedPointCanCount) {
  for (const float steps : {0.5F, 1.0F, 1.25F, 1.75F, 2.5F}) {  // in units of 2^-26, the smallest difference
    ir::Tensor in = tensor(DType::int8, {1, 4}, std::ldexp(steps, -26), 0),
               out = tensor(DType::int8, {1, 4}, 1.0F / 256, -128);
    const ir::Graph graph = one_op(ir::OpKind::softmax, ir::SoftmaxAttrs{}, {std::move(in)}, std::move(out));
    EXPECT_EQ(prepare(graph, 0).ok(), steps > 1) << steps;
  }
}

TEST(HardSwish, IsCloseToTheRealOne) {
  const HardSwish params = hard_swish_params({{0.05F}, {10}, 0}, {{0.04F}, {-20}, 0});
  for (int32_t q = -128; q < 128; ++q) {
    const double x = 0.05 * (q - 10), y = x * std::clamp(x + 3, 0.0, 6.0) / 6;
    ASSERT_NEAR(hard_swish(params, q) + 20, y / 0.04, 1.0) << q;
  }
}

}  // namespace
}  // namespace skillet::ref
