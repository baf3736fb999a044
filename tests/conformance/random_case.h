// Random single operations, drawn from a seed, with sizes, scales, zero points and attributes at and around every
// limit.
// Called by support_property_test.cpp.
// Must not know: what the tests check.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/int_math.h"
#include "npu/chip.h"
#include "random_ops.h"

namespace skillet {

inline constexpr std::array kKinds = {ir::OpKind::conv_2d,
                                      ir::OpKind::depthwise_conv_2d,
                                      ir::OpKind::fully_connected,
                                      ir::OpKind::add,
                                      ir::OpKind::sub,
                                      ir::OpKind::concatenation,
                                      ir::OpKind::split,
                                      ir::OpKind::pad,
                                      ir::OpKind::reshape,
                                      ir::OpKind::transpose,
                                      ir::OpKind::relu,
                                      ir::OpKind::abs,
                                      ir::OpKind::logistic,
                                      ir::OpKind::leaky_relu,
                                      ir::OpKind::tanh,
                                      ir::OpKind::hard_swish,
                                      ir::OpKind::elu,
                                      ir::OpKind::exp,
                                      ir::OpKind::relu6,
                                      ir::OpKind::relu_n1_to_1,
                                      ir::OpKind::quantize,
                                      ir::OpKind::resize_nearest_neighbor};
// Further kinds, for chips with one compute unit for all layers.
inline constexpr std::array kMoreKinds = {ir::OpKind::max_pool_2d, ir::OpKind::average_pool_2d, ir::OpKind::mul};
// Further kinds, for chips with a unit that moves bytes freely.
inline constexpr std::array kMovingKinds = {ir::OpKind::depth_to_space};
inline std::vector<ir::OpKind> kinds_of(const npu::Chip& chip) {
  std::vector<ir::OpKind> kinds(kKinds.begin(), kKinds.end());
  if (chip.family == "rockchip" || chip.family == "ethosu")
    kinds.insert(kinds.end(), kMoreKinds.begin(), kMoreKinds.end());
  if (chip.family == "vivante") kinds.insert(kinds.end(), kMovingKinds.begin(), kMovingKinds.end());
  return kinds;
}

inline constexpr int64_t kMaxElems = 1 << 18;  // per tensor: larger ones are slow and show nothing more

// One op of a kind, as the whole graph; sometimes with ops before and after it that force the other memory layout. `op`
// is the one under test.
struct Case {
  ir::Graph graph;
  ir::OpId op = 0;
};

class CaseMaker : RandomOps {
  using DType = ir::DType;
  using OpKind = ir::OpKind;
  using TensorId = ir::TensorId;

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
      case OpKind::max_pool_2d:
      case OpKind::average_pool_2d: pool(kind); break;
      case OpKind::resize_nearest_neighbor: enlarge(); break;
      case OpKind::mul: mul(); break;
      case OpKind::leaky_relu: leaky(); break;
      case OpKind::depth_to_space: from_depth(); break;
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
  // Shapes of other ranks, sometimes with a batch.
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
      // A reshape to the same shape: the same values, NHWC.
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
  // A requantization scale for sums of `depth` products: a typical one, or one near the limits.
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
    // Ratio of the larger operand's scale to the output's.
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
    const bool same = dtype_ == DType::int8 || !chance(4);  // TFLite needs equal quantization for the other types
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

  void pool(OpKind kind) {
    const ir::Shape in = image();
    ir::PoolAttrs attrs{.padding = chance(2) ? ir::Padding::same : ir::Padding::valid};
    constexpr std::array kSizes = {1, 2, 2, 3, 3, 4, 5, 7, 8, 13};
    attrs.filter_h = any_of(kSizes), attrs.filter_w = chance(4) ? any_of(kSizes) : attrs.filter_h;
    constexpr int kLargest = 32768;  // the largest that a model may have
    if (chance(6)) attrs.filter_h = std::min(in[1], kLargest), attrs.filter_w = std::min(in[2], kLargest);
    attrs.stride_h = range(1, 3), attrs.stride_w = chance(4) ? range(1, 3) : attrs.stride_h;
    const bool valid = attrs.padding == ir::Padding::valid;
    if (valid || in.elems() > 10'000)
      attrs.filter_h = std::min(attrs.filter_h, in[1]), attrs.filter_w = std::min(attrs.filter_w, in[2]);
    attrs.activation = chance(6) ? activation() : ir::Activation::none;
    const auto out = [&](int size, int filter, int stride) {
      return valid ? (size - filter) / stride + 1 : ceil_div(size, stride);
    };
    const float s = scale();
    const int32_t zp = zero_point();
    const TensorId x = input(in, s, zp);
    const bool same = kind == OpKind::max_pool_2d ? !chance(10) : chance(2);
    const ir::Shape to{1, out(in[1], attrs.filter_h, attrs.stride_h), out(in[2], attrs.filter_w, attrs.stride_w),
                       in[3]};
    emit({.kind = kind, .attrs = attrs, .inputs = {x}, .outputs = {add_activation(to, same ? s : s * 1.5F, zp)}});
  }

  void enlarge() {
    const ir::Shape in = image();
    constexpr std::array kTimes = {1, 2, 2, 3, 4, 5, 6, 7, 8, 9};
    const bool large = in.elems() > 4'000;
    const int rows = large ? range(1, 2) : any_of(kTimes), columns = chance(3) ? (large ? 1 : any_of(kTimes)) : rows;
    const ir::Shape to{1, in[1] * rows + (chance(12) ? 1 : 0), in[2] * columns, in[3]};
    const float s = scale();
    const int32_t zp = zero_point();
    ir::ResizeAttrs attrs{.align_corners = chance(10), .half_pixel_centers = chance(4)};
    if (attrs.align_corners) attrs.half_pixel_centers = false;
    const TensorId x = input(in, s, zp);
    emit({.kind = OpKind::resize_nearest_neighbor,
          .attrs = attrs,
          .inputs = {x, ints({to[1], to[2]})},
          .outputs = {add_activation(to, s, chance(12) ? 255 - zp : zp)}});
  }

  void from_depth() {
    ir::Shape in = image();
    const int block = range(1, 4), depth = std::max(in[3] / (block * block), 1);
    in.dims[3] = depth * block * block;
    const float s = scale();
    const int32_t zp = zero_point();
    const TensorId x = input(in, s, zp);
    emit({.kind = OpKind::depth_to_space,
          .attrs = ir::BlockAttrs{block},
          .inputs = {x},
          .outputs = {add_activation({1, in[1] * block, in[2] * block, depth}, s, chance(12) ? 255 - zp : zp)}});
  }

  // Multiplies two tensors of a shape, or a tensor and one pixel, which may be constant.
  void mul() {
    const ir::Shape shape = image();
    const float a = scale(), b = 0.005F * static_cast<float>(range(1, 20));
    const float out = a * b * (chance(4) ? power(-12, 30) : 100 * power(-2, 2));
    const TensorId x = input(shape, a, zero_point());
    const ir::Shape pixel = chance(3) ? shape : ir::Shape{1, 1, 1, shape[3]};
    TensorId y = ir::kNoTensor;
    if (chance(2)) {
      const int32_t zp = zero_point() - (dtype_ == DType::int8 ? 128 : 0);
      y = constant(dtype_, pixel, random_bytes(static_cast<size_t>(pixel.elems())), {{b}, {zp}, 0});
    } else {
      y = input(pixel, b, zero_point());
    }
    const bool swapped = chance(4);
    const TensorId product = add_activation(shape, std::isnormal(out) ? out : a, zero_point());
    emit({.kind = OpKind::mul,
          .attrs = ir::ActivationAttrs{chance(3) ? activation() : ir::Activation::none},
          .inputs = {swapped ? y : x, swapped ? x : y},
          .outputs = {product}});
  }

  void leaky() {
    const ir::Shape shape = any_shape();
    const float s = scale(), out = chance(2) ? s : s * power(-9, 9);
    const float alpha = chance(4) ? power(-20, 4) : 0.05F * static_cast<float>(range(0, 20));
    const TensorId x = input(shape, s, zero_point());
    emit({.kind = OpKind::leaky_relu,
          .attrs = ir::LeakyReluAttrs{alpha},
          .inputs = {x},
          .outputs = {add_activation(shape, std::isnormal(out) ? out : s, zero_point())}});
  }

  void table(OpKind kind) {
    const ir::Shape shape = any_shape();
    const bool bends = kind == OpKind::tanh || kind == OpKind::elu || kind == OpKind::exp || kind == OpKind::hard_swish;
    const float s = bends && !chance(4) ? power(-9, -2) : scale();
    float out = s;
    if (kind == OpKind::tanh) {
      out = 1.0F / 128;
    } else if (kind == OpKind::logistic) {
      out = chance(2) ? 1.0F / 256 : power(-16, chance(4) ? 70 : 1);
    } else if (!chance(3)) {
      out = s / (chance(3) ? power(-66, -60) : chance(2) ? power(20, 26) : power(-10, 10));
    }
    const TensorId x = input(shape, s, zero_point());
    const int32_t zp = kind == OpKind::tanh && !chance(8) ? 128 : zero_point();
    emit({.kind = kind, .inputs = {x}, .outputs = {add_activation(shape, std::isnormal(out) ? out : s, zp)}});
  }

  int surroundings_;  // bit 0: planar input; bit 1: NHWC output
  ir::OpId op_ = 0;
};

}  // namespace skillet
