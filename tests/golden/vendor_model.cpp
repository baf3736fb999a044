#include "vendor_model.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "graph/ir/shape.h"

namespace skillet::golden {
namespace {

// From the set's README: weights (n * 1 + seed) % modulus - middle, over divisor; bias ((o + seed) % period + 1) over
// divisor.
struct Formula {
  std::string_view set;
  int modulus, middle, divisor, bias_divisor;
};
constexpr Formula kFormulas[] = {
    {"add", 11, 5, 16, 8}, {"pool", 11, 5, 16, 8}, {"lut", 11, 5, 16, 8}, {"dw", 7, 3, 8, 4}, {"float", 7, 3, 8, 4}};
constexpr int kAddBiasPeriod = 7;

bool starts(const std::string& name, std::string_view set) { return name.starts_with(std::string(set) + "/"); }

int seed_of(const std::string& name, int number) {
  if (!starts(name, "add")) return 0;
  if (name.find("/btl_") != std::string::npos) return number == 2 ? 2 : 3;
  return std::clamp(number, 1, 2);
}

int32_t nearest(float value) { return static_cast<int32_t>(std::lrint(value)); }

// The two steps of a global average: 7x7 windows, then all of them; all weights are equal.
bool is_mean(const std::string& name, int number) { return name.find("/gap_") != std::string::npos && number > 1; }

ir::Tensor tensor(const char* name, std::vector<int32_t> dims, const Quantized& quant) {
  ir::Tensor t;
  t.name = name;
  t.dtype = ir::DType::int8;
  t.shape = ir::Shape(std::move(dims));
  t.quant = {{quant.scale}, {quant.zero}, 0};
  return t;
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

int32_t behind(int32_t outputs, int32_t stride, int32_t kernel, int32_t before, int32_t size) {
  return std::max((outputs - 1) * stride + kernel - before - size, 0);
}
// Returns whether the padding is TensorFlow Lite's SAME.
bool is_same(int32_t outputs, int32_t stride, int32_t kernel, int32_t before, int32_t size) {
  const int32_t total = std::max((outputs - 1) * stride + kernel - size, 0);
  return outputs == (size + stride - 1) / stride && before == total / 2;
}
bool is_same(const VendorOp& op) {
  return is_same(op.out_height, op.stride_y, op.kernel_height, op.pad_top, op.in_height) &&
         is_same(op.out_width, op.stride_x, op.kernel_width, op.pad_left, op.in_width);
}
bool is_padded(const VendorOp& op) {
  return op.pad_top > 0 || op.pad_left > 0 ||
         behind(op.out_height, op.stride_y, op.kernel_height, 0, op.in_height) > 0 ||
         behind(op.out_width, op.stride_x, op.kernel_width, 0, op.in_width) > 0;
}

// Returns weights as stored, with channels last.
Bytes stored(const VendorOp& op, const QuantizedConv& q) {
  const bool depthwise = op.type == "depthwise";
  const auto taps = static_cast<size_t>(op.kernel_height * op.kernel_width);
  const auto in = static_cast<size_t>(depthwise ? 1 : op.in_channels), out = static_cast<size_t>(op.out_channels);
  Bytes bytes(q.weights.size());
  for (size_t o = 0; o < out; ++o) {
    for (size_t i = 0; i < in; ++i) {
      for (size_t t = 0; t < taps; ++t) {
        const size_t to = depthwise ? t * out + o : (o * taps + t) * in + i;
        bytes[to] = static_cast<uint8_t>(q.weights[(o * in + i) * taps + t] + q.zeros[o]);
      }
    }
  }
  return bytes;
}

ir::TensorId add_made(const VendorOp& op, const Quantized& in, ir::Graph& graph) {
  const ir::TensorId made = graph.add_tensor(tensor("made", {1, op.in_height, op.in_width, op.in_channels}, in));
  graph.add_op({.kind = ir::OpKind::max_pool_2d,
                .attrs = ir::PoolAttrs{.padding = ir::Padding::valid},
                .inputs = {graph.inputs[0]},
                .outputs = {made}});
  return made;
}

// Pads with zeros, or with the lowest value if `maximum`.
ir::TensorId add_padded(const VendorOp& op, const Quantized& in, ir::TensorId from, bool maximum, ir::Graph& graph) {
  const int32_t bottom = behind(op.out_height, op.stride_y, op.kernel_height, op.pad_top, op.in_height);
  const int32_t right = behind(op.out_width, op.stride_x, op.kernel_width, op.pad_left, op.in_width);
  ir::Tensor amounts;
  amounts.name = "amounts";
  amounts.dtype = ir::DType::int32;
  amounts.shape = ir::Shape({4, 2});
  ir::set_constant(amounts, bytes_of(std::vector<int32_t>{0, 0, op.pad_top, bottom, op.pad_left, right, 0, 0}));
  const ir::TensorId table = graph.add_tensor(std::move(amounts));
  const ir::TensorId padded = graph.add_tensor(
      tensor("padded", {1, op.in_height + op.pad_top + bottom, op.in_width + op.pad_left + right, op.in_channels}, in));
  ir::Tensor lowest = tensor("lowest", {1}, in);
  ir::set_constant(lowest, {0x80});
  if (maximum)
    graph.add_op({.kind = ir::OpKind::pad_v2,
                  .inputs = {from, table, graph.add_tensor(std::move(lowest))},
                  .outputs = {padded}});
  else
    graph.add_op({.kind = ir::OpKind::pad, .inputs = {from, table}, .outputs = {padded}});
  return padded;
}

void add_slope(ir::Graph& graph) {
  constexpr float kAlpha = 0.1F;
  const ir::TensorId sums = graph.outputs[0];
  ir::Tensor out = graph.tensor(sums);
  out.name = "sloped";
  graph.outputs = {graph.add_tensor(std::move(out))};
  graph.add_op({.kind = ir::OpKind::leaky_relu,
                .attrs = ir::LeakyReluAttrs{.alpha = kAlpha},
                .inputs = {sums},
                .outputs = {graph.outputs[0]}});
}

}  // namespace

Result<FloatConv> float_conv(const std::string& name, int number, const VendorOp& op) {
  const auto* const f = std::find_if(std::begin(kFormulas), std::end(kFormulas),
                                     [&](const Formula& one) { return starts(name, one.set); });
  if (f == std::end(kFormulas)) return error(ErrorCode::unsupported, "{}: no formula for its weights", name);
  const auto kernels = static_cast<size_t>(op.out_channels);
  const auto taps = static_cast<size_t>(op.kernel_height * op.kernel_width);
  const size_t count = (op.type == "depthwise" ? 1 : static_cast<size_t>(op.in_channels)) * taps;
  FloatConv conv;
  conv.bias.assign(kernels, 0.0F);
  if (is_mean(name, number)) {
    constexpr float kPixels = 256, kFirst = 49;
    conv.weights.assign(kernels * count, number == 2 ? 1 / kFirst : kFirst / kPixels);
    return conv;
  }
  const int seed = seed_of(name, number);
  for (size_t n = 0; n < kernels * count; ++n)
    conv.weights.push_back(static_cast<float>((static_cast<int>(n) + seed) % f->modulus - f->middle) /
                           static_cast<float>(f->divisor));
  for (size_t o = 0; o < kernels; ++o) {
    const int step = static_cast<int>(o) + seed;
    conv.bias[o] = static_cast<float>((starts(name, "add") ? step % kAddBiasPeriod : step) + 1) /
                   static_cast<float>(f->bias_divisor);
    if (name.find("/res_") != std::string::npos) {
      const auto middle = static_cast<size_t>(op.kernel_height / 2 * op.kernel_width + op.kernel_width / 2);
      conv.weights[o * count + o * taps + middle] += 1;
    }
  }
  return conv;
}

// Asymmetric quantization, with 0 inside the range, in 32-bit floats.
QuantizedConv quantize(const FloatConv& conv, size_t kernels) {
  constexpr float kSteps = 255, kTop = 127;
  QuantizedConv out;
  const size_t count = conv.weights.size() / kernels;
  for (size_t k = 0; k < kernels; ++k) {
    const std::span<const float> w(conv.weights.data() + k * count, count);
    const float least = std::min(0.0F, std::ranges::min(w)), most = std::max(0.0F, std::ranges::max(w));
    const float scale = most > least ? (most - least) / kSteps : 1 / kSteps;
    const int32_t zero = nearest(kTop - most / scale);
    out.scales.push_back(scale);
    out.zeros.push_back(zero);
    for (const float value : w)
      out.weights.push_back(std::clamp(nearest(value / scale + static_cast<float>(zero)), INT8_MIN, INT8_MAX) - zero);
  }
  return out;
}

Quantized quantize(double least, double most) {
  constexpr double kSteps = 255;
  least = std::min(least, 0.0), most = std::max(most, 0.0);
  const double scale = (most - least) / kSteps;
  return {static_cast<float>(scale), static_cast<int32_t>(std::lrint(INT8_MIN - least / scale))};
}

Result<ir::Graph> conv_graph(const VendorOp& op, const FloatConv& conv, const Quantized& in, const Quantized& out,
                             const ConvWords& words, bool is_made) {
  const bool depthwise = op.type == "depthwise";
  const QuantizedConv q = quantize(conv, static_cast<size_t>(op.out_channels));
  ir::Graph graph("");
  graph.inputs = {graph.add_tensor(tensor("in", {1, op.in_height, op.in_width, op.in_channels}, in))};
  ir::Tensor filter =
      tensor("w",
             depthwise ? std::vector<int32_t>{1, op.kernel_height, op.kernel_width, op.out_channels}
                       : std::vector<int32_t>{op.out_channels, op.kernel_height, op.kernel_width, op.in_channels},
             {});
  filter.quant = {q.scales, q.zeros, depthwise ? 3 : 0};
  ir::set_constant(filter, stored(op, q));
  ir::Tensor bias = tensor("b", {op.out_channels}, {});
  bias.dtype = ir::DType::int32;
  std::vector<int32_t> sums;
  bias.quant = {{}, {}, 0};
  for (size_t c = 0; c < conv.bias.size(); ++c) {
    const float unit = in.scale * q.scales[c];
    bias.quant.scales.push_back(unit);
    bias.quant.zero_points.push_back(0);
    sums.push_back(nearest(conv.bias[c] / unit));
  }
  ir::set_constant(bias, bytes_of(sums));
  const ir::TensorId w = graph.add_tensor(std::move(filter)), b = graph.add_tensor(std::move(bias));
  ir::ConvAttrs attrs{.padding = is_same(op) ? ir::Padding::same : ir::Padding::valid,
                      .stride_h = op.stride_y,
                      .stride_w = op.stride_x};
  if (words.is_limited) attrs.activation = words.limit == INT32_MAX ? ir::Activation::relu : ir::Activation::relu6;
  const bool pads = attrs.padding == ir::Padding::valid && is_padded(op);
  const ir::TensorId made = is_made ? add_made(op, in, graph) : graph.inputs[0];
  const ir::TensorId from = pads ? add_padded(op, in, made, false, graph) : made;
  graph.outputs = {graph.add_tensor(tensor("out", {1, op.out_height, op.out_width, op.out_channels}, out))};
  graph.add_op({.kind = depthwise ? ir::OpKind::depthwise_conv_2d : ir::OpKind::conv_2d,
                .attrs = attrs,
                .inputs = {from, w, b},
                .outputs = {graph.outputs[0]}});
  if (words.has_slope) add_slope(graph);
  SK_TRY(ir::verify(graph));
  return graph;
}

Result<ir::Graph> pool_graph(const VendorOp& op, const Quantized& in) {
  ir::Graph graph("");
  graph.inputs = {graph.add_tensor(tensor("in", {1, op.in_height, op.in_width, op.in_channels}, in))};
  const bool pads = !is_same(op) && is_padded(op);
  const ir::TensorId from = pads ? add_padded(op, in, graph.inputs[0], true, graph) : graph.inputs[0];
  graph.outputs = {graph.add_tensor(tensor("out", {1, op.out_height, op.out_width, op.in_channels}, in))};
  graph.add_op({.kind = op.type == "maxpool" ? ir::OpKind::max_pool_2d : ir::OpKind::average_pool_2d,
                .attrs = ir::PoolAttrs{.padding = is_same(op) ? ir::Padding::same : ir::Padding::valid,
                                       .stride_h = op.stride_y,
                                       .stride_w = op.stride_x,
                                       .filter_h = op.kernel_height,
                                       .filter_w = op.kernel_width},
                .inputs = {from},
                .outputs = {graph.outputs[0]}});
  SK_TRY(ir::verify(graph));
  return graph;
}

void meet_sums(const FloatConv& conv, const QuantizedConv& q, int32_t zero, const std::vector<int32_t>& sums,
               ScaleRange& range) {
  constexpr double kHalf = 0.5;
  const size_t count = q.weights.size() / q.scales.size();
  for (size_t c = 0; c < q.scales.size() && c < sums.size(); ++c) {
    int64_t weights = 0;
    for (size_t i = 0; i < count; ++i) weights += q.weights[c * count + i];
    const double own = static_cast<double>(sums[c]) + static_cast<double>(zero * weights);
    const double unit = double{conv.bias[c]} / q.scales[c];
    if (unit > 0 && own > kHalf) range.meet(unit / (own + kHalf), unit / (own - kHalf));
  }
}

}  // namespace skillet::golden
