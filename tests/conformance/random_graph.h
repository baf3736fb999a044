// Random graphs, drawn from a seed, with inputs for them.
// Called by random_graphs_test.cpp and tunings_test.cpp.
// Must not know: what the tests check.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/bytes.h"
#include "base/int_math.h"
#include "random_ops.h"

namespace skillet {

// Makes one graph from a seed: ops over images; each reads any tensor made before.
class GraphMaker : RandomOps {
  using DType = ir::DType;
  using OpKind = ir::OpKind;
  using TensorId = ir::TensorId;

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
  // A constant activation: the CPU computes its ops.
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

  // Outputs: all computed tensors without readers, some with readers; sometimes an input, a constant, or an output
  // twice.
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
    switch (range(0, 15)) {
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
      case 13: return enlarge();
      case 14: return from_depth();
      default: return fully_connected();
    }
  }

  // Bytes with many zero points, as in trained filters.
  TensorId filter(ir::Shape s, int axis, float scale) {
    int32_t zp = dtype_ == DType::int8 ? 0 : range(0, 255);
    if (dtype_ == DType::int8 && chance(8)) zp = range(-128, 127);
    Bytes bytes = random_bytes(static_cast<size_t>(s.elems()));
    for (uint8_t& b : bytes) b = chance(4) ? static_cast<uint8_t>(zp) : b;
    const auto channels = static_cast<size_t>(s[axis]);
    const size_t scales = chance(8) ? channels : 1;
    ir::Quant quant{std::vector<float>(scales, scale), std::vector<int32_t>(scales, zp), axis};
    // Unequal scales: TFLite has them for int8 without a zero point.
    if (dtype_ == DType::int8 && scales > 1 && zp == 0 && chance(2)) quant.scales[0] *= 1.25F;
    if (dtype_ == DType::int8 && scales > 1 && zp == 0 && chance(2)) {
      for (float& one : quant.scales) one *= power(-14, 0);
    }
    return constant(dtype_, std::move(s), bytes, std::move(quant));
  }
  TensorId bias(int count, float scale) {
    if (chance(6)) return ir::kNoTensor;
    const int reach = extreme_ && chance(4) ? INT32_MAX : 2000;
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (int32_t& v : values) v = static_cast<int32_t>(uniform(-1, 1) * reach);
    return constant(DType::int32, ir::Shape{count}, values, {{scale}, {0}, 0});
  }
  // Returns the scale at which sums of `depth` random products spread over the output range.
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
    // Only images are operands of other ops in these graphs.
    keep_out(flat);
    keep_out(output);
  }
  void keep_out(TensorId id) {
    images_.erase(std::find(images_.begin(), images_.end(), id));
    if (ir::consumers(graph_)[static_cast<size_t>(id)].empty()) graph_.outputs.push_back(id);
  }

  // Returns another tensor of the shape of `like`, or `like` itself if there is none.
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
    std::vector<int32_t> order = chance(2) ? std::vector<int32_t>{0, 3, 1, 2} : std::vector<int32_t>{0, 2, 3, 1};
    if (chance(3)) std::swap(order[1], order[2]);
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
    const OpKind kind = any_of(std::array{OpKind::relu, OpKind::abs, OpKind::logistic, OpKind::leaky_relu, OpKind::tanh,
                                          OpKind::hard_swish, OpKind::relu6, OpKind::quantize});
    TensorId output = ir::kNoTensor;
    if (kind == OpKind::tanh) {
      output = activation(shape(input), 1.0F / 128);
      graph_.tensor(output).quant.zero_points = {dtype_ == DType::int8 ? 0 : 128};
    } else if (kind == OpKind::logistic) {
      output = activation(shape(input), 1.0F / 256);
      graph_.tensor(output).quant.zero_points = {dtype_ == DType::int8 ? -128 : 0};
    } else {
      output = chance(2) ? same_quant(shape(input), input) : activation(shape(input), scale_of(input) * power(-2, 2));
    }
    const ir::Attrs attrs = kind == OpKind::leaky_relu
                                ? ir::Attrs(ir::LeakyReluAttrs{0.05F * static_cast<float>(range(0, 20))})
                                : ir::default_attrs(kind);
    graph_.add_op({.kind = kind, .attrs = attrs, .inputs = {input}, .outputs = {output}});
  }
  void enlarge() {
    const TensorId input = any_image();
    ir::Shape s = shape(input);
    if (s.elems() > 20'000) return unary();
    s.dims[1] *= range(1, 3), s.dims[2] *= range(1, 3);
    graph_.add_op({.kind = OpKind::resize_nearest_neighbor,
                   .attrs = ir::ResizeAttrs{.half_pixel_centers = chance(2)},
                   .inputs = {input, ints({s[1], s[2]})},
                   .outputs = {same_quant(s, input)}});
  }
  void from_depth() {
    const TensorId input = any_image();
    const ir::Shape s = shape(input);
    const int block = s[3] % 9 == 0 ? 3 : 2;
    if (s[3] % (block * block) != 0) return enlarge();
    graph_.add_op({.kind = OpKind::depth_to_space,
                   .attrs = ir::BlockAttrs{block},
                   .inputs = {input},
                   .outputs = {same_quant({1, s[1] * block, s[2] * block, s[3] / block / block}, input)}});
  }
  // Makes more commands than one submission holds.
  void long_chain() {
    TensorId at = activation({1, 6, range(1, 3), 2}, 0.1F);
    graph_.inputs.push_back(at);
    const int length = range(400, 900);
    for (int i = 0; i < length; ++i) {
      const TensorId to = same_quant(shape(at), at);
      graph_.add_op({.kind = is_odd(i) ? OpKind::relu : OpKind::abs, .inputs = {at}, .outputs = {to}});
      if (!chance(50)) images_.erase(std::find(images_.begin(), images_.end(), at));  // few become outputs
      at = to;
    }
  }

  bool extreme_ = false;
  std::vector<TensorId> images_;
};

inline std::vector<Bytes> random_inputs(const ir::Graph& graph, uint32_t seed) {
  std::mt19937 random(seed ^ 0x5a5a);
  std::vector<Bytes> inputs;
  for (const ir::TensorId id : graph.inputs) {
    Bytes& bytes = inputs.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  }
  return inputs;
}

inline uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text ? static_cast<uint32_t>(std::atoi(text)) : otherwise;
}

}  // namespace skillet
