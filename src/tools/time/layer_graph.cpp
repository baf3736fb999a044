#include "tools/time/layer_graph.h"

#include <algorithm>
#include <map>

#include "base/int_math.h"

namespace skillet::tools {
namespace {

constexpr int kZeroPoint = 128;
constexpr int64_t kWeightsMax = int64_t{1} << 28;  // of all layers together: the file is untrusted

// Sums of six numbers of a portable generator: nearly normal, standard deviation 15.5.
class Weights {
 public:
  uint8_t next() {
    int sum = 0;
    for (int i = 0; i < 6; ++i) sum += static_cast<int>(step() % 23);
    return static_cast<uint8_t>(std::clamp(kZeroPoint + sum - 66, 0, 255));
  }

 private:
  uint32_t step() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<uint32_t>(state_ >> 33);
  }
  uint64_t state_ = 1;
};

int32_t narrow(int64_t size) { return static_cast<int32_t>(size); }

class Builder {
 public:
  explicit Builder(std::span<const sim::Layer> layers) : layers_(layers) {}

  Result<LayerGraph> build() {
    for (const sim::Layer& layer : layers_) SK_TRY(add(layer).with_context(fmt::format("layer {}", layer.id)));
    std::vector<bool> read(graph().tensors.size());
    for (const ir::Op& op : graph().ops) {
      for (const ir::TensorId id : op.inputs) read[static_cast<size_t>(id)] = true;
    }
    for (const ir::Op& op : graph().ops) {
      if (!read[static_cast<size_t>(op.outputs[0])]) graph().outputs.push_back(op.outputs[0]);
    }
    if (graph().ops.empty()) return error(ErrorCode::unsupported, "no layer has an operation of a graph");
    SK_TRY(ir::verify(graph()));
    return std::move(out_);
  }

 private:
  ir::Graph& graph() { return out_.graph; }

  Result<void> add(const sim::Layer& layer) {
    const std::string_view op = layer.op;
    if (op == "input" || op == "output" || layer.out_elements() == 0) return {};
    if (op == "conv" || op == "fc" || op == "dwconv") return add_convolution(layer);
    if (op == "add" && layer.inputs.size() == 2) return add_plain(layer, ir::OpKind::add);
    if (op == "concat" && !layer.inputs.empty()) return add_concatenation(layer);
    ++out_.left_out;
    return {};
  }

  ir::TensorId image(int64_t h, int64_t w, int64_t c) {
    ir::Tensor tensor{.dtype = ir::DType::uint8,
                      .shape = {1, narrow(h), narrow(w), narrow(c)},
                      .quant = {.scales = {0.02F}, .zero_points = {kZeroPoint}}};
    tensor.name = fmt::format("t{}", graph().tensors.size());
    return graph().add_tensor(std::move(tensor));
  }
  ir::TensorId constant(ir::DType dtype, ir::Shape shape, ir::Quant quant, Bytes bytes) {
    ir::Tensor tensor{.name = fmt::format("t{}", graph().tensors.size()),
                      .dtype = dtype,
                      .shape = std::move(shape),
                      .quant = std::move(quant)};
    ir::set_constant(tensor, std::move(bytes));
    return graph().add_tensor(std::move(tensor));
  }

  // The output of layer `from`, if it is in the graph and has this shape; else an input of the graph.
  ir::TensorId operand(int from, int64_t h, int64_t w, int64_t c) {
    const ir::Shape shape{1, narrow(h), narrow(w), narrow(c)};
    if (const auto at = made_.find(from); at != made_.end() && graph().tensor(at->second).shape == shape)
      return at->second;
    const auto [known, is_new] = outside_.try_emplace({from, shape.dims}, ir::kNoTensor);
    if (is_new) {
      known->second = image(h, w, c);
      graph().inputs.push_back(known->second);
    }
    return known->second;
  }

  static ir::Activation activation(const sim::Layer& layer) {
    return layer.act == "relu"    ? ir::Activation::relu
           : layer.act == "relu6" ? ir::Activation::relu6
                                  : ir::Activation::none;
  }

  // Other activations are separate operations, which the graph leaves out.
  void finish(const sim::Layer& layer, ir::Op op) {
    const ir::TensorId out = image(layer.out_h, layer.out_w, layer.out_c);
    op.outputs = {out};
    graph().add_op(std::move(op));
    const bool plain = layer.act == "none" || activation(layer) != ir::Activation::none;
    if (plain) made_[layer.id] = out;
    out_.left_out += plain ? 0 : 1;
  }

  Result<void> add_convolution(const sim::Layer& layer) {
    const bool connected = layer.op == "fc", depthwise = layer.op == "dwconv";
    const int64_t h = connected ? 1 : layer.in_h, w = connected ? 1 : layer.in_w;
    const int64_t c = connected ? layer.in_elements() : layer.in_c;
    const int64_t kh = connected ? 1 : layer.kh, kw = connected ? 1 : layer.kw;
    const auto padding = padding_of(layer, kh, kw, h, w);
    if (!padding || (depthwise && layer.in_c != layer.out_c)) {
      ++out_.left_out;
      return {};
    }
    if ((weights_ += kh * kw * c * (depthwise ? 1 : layer.out_c)) > kWeightsMax)
      return error(ErrorCode::malformed, "more than {} weights", kWeightsMax);
    ir::ConvAttrs attrs{.padding = *padding, .activation = activation(layer)};
    attrs.stride_h = attrs.stride_w = narrow(layer.stride);
    attrs.dilation_h = attrs.dilation_w = narrow(layer.dilation);
    const ir::Shape filter = depthwise ? ir::Shape{1, narrow(kh), narrow(kw), narrow(c)}
                                       : ir::Shape{narrow(layer.out_c), narrow(kh), narrow(kw), narrow(c)};
    ir::Op op{.kind = depthwise ? ir::OpKind::depthwise_conv_2d : ir::OpKind::conv_2d, .attrs = attrs};
    op.inputs = {operand(layer.inputs.empty() ? -1 - layer.id : layer.inputs[0], h, w, c), filter_of(filter),
                 bias_of(layer.out_c)};
    finish(layer, std::move(op));
    return {};
  }

  // TFLite's padding; none if neither of its two kinds gives the layer's output.
  static std::optional<ir::Padding> padding_of(const sim::Layer& layer, int64_t kh, int64_t kw, int64_t h, int64_t w) {
    const int64_t stride = layer.op == "fc" ? 1 : layer.stride, spread = std::max<int64_t>(layer.dilation, 1);
    if (stride == 0) return {};
    if (ceil_div(h, stride) == layer.out_h && ceil_div(w, stride) == layer.out_w) return ir::Padding::same;
    const int64_t rows = h - (kh - 1) * spread, columns = w - (kw - 1) * spread;
    if (rows > 0 && columns > 0 && ceil_div(rows, stride) == layer.out_h && ceil_div(columns, stride) == layer.out_w)
      return ir::Padding::valid;
    return {};
  }

  ir::TensorId filter_of(const ir::Shape& shape) {
    Bytes bytes(static_cast<size_t>(shape.elems()));
    for (uint8_t& byte : bytes) byte = weight_values_.next();
    return constant(ir::DType::uint8, shape, {.scales = {0.01F}, .zero_points = {kZeroPoint}}, std::move(bytes));
  }
  ir::TensorId bias_of(int64_t channels) {
    return constant(ir::DType::int32, {narrow(channels)}, {.scales = {0.02F * 0.01F}, .zero_points = {0}},
                    Bytes(static_cast<size_t>(channels) * 4));
  }

  Result<void> add_plain(const sim::Layer& layer, ir::OpKind kind) {
    ir::Op op{.kind = kind, .attrs = ir::ActivationAttrs{activation(layer)}};
    for (const int from : layer.inputs) op.inputs.push_back(operand(from, layer.in_h, layer.in_w, layer.in_c));
    finish(layer, std::move(op));
    return {};
  }

  Result<void> add_concatenation(const sim::Layer& layer) {
    ir::Op op{.kind = ir::OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = 3}};
    int64_t channels = 0;
    for (const int from : layer.inputs) {
      const auto at = made_.find(from);
      if (at == made_.end()) return leave_out();
      const ir::Shape& shape = graph().tensor(at->second).shape;
      if (shape[1] != layer.out_h || shape[2] != layer.out_w) return leave_out();
      channels += shape[3];
      op.inputs.push_back(at->second);
    }
    if (channels != layer.out_c) return leave_out();
    finish(layer, std::move(op));
    return {};
  }
  Result<void> leave_out() {
    ++out_.left_out;
    return {};
  }

  std::span<const sim::Layer> layers_;
  LayerGraph out_;
  Weights weight_values_;
  int64_t weights_ = 0;
  std::map<int, ir::TensorId> made_;                                      // by layer
  std::map<std::pair<int, std::vector<int32_t>>, ir::TensorId> outside_;  // by layer and shape
};

}  // namespace

Result<LayerGraph> graph_of(std::span<const sim::Layer> layers) { return Builder(layers).build(); }

}  // namespace skillet::tools
