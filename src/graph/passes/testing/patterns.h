// Random networks of the patterns of the exact passes, whole and in parts: some are alone, read twice or returned.
// Called by rewrite_test.cpp.
// Must not know: the pass under test.
#pragma once

#include <algorithm>

#include "graph/ir/testing/random_ops.h"

namespace skillet::passes {

class Patterns : RandomOps {
  using DType = ir::DType;
  using OpKind = ir::OpKind;
  using TensorId = ir::TensorId;

 public:
  explicit Patterns(uint32_t seed) : RandomOps(seed) {}

  ir::Graph make() {
    graph_.name = "patterns";
    dtype_ = chance(2) ? DType::uint8 : DType::int8;
    at_ = image({1, range(1, 9), range(1, 9), range(1, 5)});
    graph_.inputs = {at_};
    for (int i = range(1, 4); i > 0; --i) {
      add_pattern();
      if (chance(4)) graph_.outputs.push_back(at_);
      if (chance(6)) unary(OpKind::abs, at_);  // read twice
    }
    choose_outputs();
    return std::move(graph_);
  }

 private:
  // ---- tensors ----

  int32_t lowest() const { return dtype_ == DType::int8 ? -128 : 0; }
  const ir::Shape& shape() const { return graph_.tensor(at_).shape; }
  TensorId tensor(ir::Tensor one) {
    one.name = "t" + std::to_string(graph_.tensors.size());
    return graph_.add_tensor(std::move(one));
  }
  TensorId image(ir::Shape dims) {
    const float scale = chance(3) ? 0.05F : 0.003F * static_cast<float>(range(1, 40));
    const int32_t zero = lowest() + (chance(3) ? 0 : range(0, 255));
    return tensor({.dtype = dtype_, .shape = std::move(dims), .quant = {{scale}, {zero}, 0}});
  }
  TensorId like(TensorId other) { return tensor({.dtype = dtype_, .shape = {1}, .quant = graph_.tensor(other).quant}); }
  TensorId ints(const std::vector<int32_t>& values, ir::Shape dims) {
    return constant(DType::int32, std::move(dims), values);
  }
  using RandomOps::ints;
  Bytes bytes(int64_t count) { return random_bytes(static_cast<size_t>(count)); }

  // Tensors without a reader are returned.
  void choose_outputs() {
    const auto readers = ir::consumers(graph_);
    const auto producers = ir::producers(graph_);
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const auto id = static_cast<TensorId>(i);
      if (producers[i] >= 0 && readers[i].empty() && std::ranges::count(graph_.outputs, id) == 0)
        graph_.outputs.push_back(id);
    }
  }

  // ---- ops ----

  // One more op, whose result has the quantization of `result`; its shape is inferred.
  TensorId emit(ir::Op op, TensorId result) {
    op.source_index = static_cast<int32_t>(graph_.ops.size());
    op.outputs = {result};
    graph_.add_op(std::move(op));
    if (!has_shapes()) graph_.ops.pop_back();
    return at_ = graph_.ops.empty() || graph_.ops.back().outputs[0] != result ? at_ : result;
  }
  TensorId emit_like(ir::Op op) { return emit(std::move(op), like(at_)); }
  void unary(OpKind kind, TensorId from) {
    const TensorId back = at_;
    emit({.kind = kind, .attrs = ir::default_attrs(kind), .inputs = {from}}, like(from));
    at_ = back;
  }
  TensorId result() { return chance(2) ? like(at_) : image({1}); }

  void add_pattern() {
    switch (range(0, 24)) {
      case 0: return conv(chance(2)), maybe_activation();
      case 1: return padded_conv();
      case 2: return batched_conv();
      case 3: return average();
      case 4: return quantizes();
      case 5: return with_constant();
      case 6: return transposes();
      case 7: return reshapes();
      case 8: return of_constants();
      case 9: return dense();
      case 10: return dilated();
      case 11: return slices();
      case 12: return joins();
      case 13: return slopes();
      case 14: return pairs();
      case 15: return transposed_conv();
      case 16: return wide_pad();
      case 17: return mixed_join();
      case 18: return max_pool();
      case 19: return images();
      case 20: return mirrored();
      case 21: return resized();
      case 22: return deeper();
      case 23: return repeated();
      default: return activation();
    }
  }

  struct Window {
    int kernel = 1, stride = 1, dilation = 1, multiplier = 1;
    ir::Padding padding = ir::Padding::same;
  };
  TensorId filter(ir::Shape dims, int axis) {
    ir::Quant quant{{0.01F}, {lowest() + range(0, 255)}, axis};
    if (dtype_ == DType::int8 && chance(2)) {
      const auto channels = static_cast<size_t>(dims[axis]);
      quant.scales.clear();
      for (size_t i = 0; i < channels; ++i) quant.scales.push_back(0.001F * static_cast<float>(range(3, 20)));
      quant.zero_points.assign(channels, 0);
    }
    const int64_t count = dims.elems();
    return constant(dtype_, std::move(dims), bytes(count), std::move(quant));
  }
  void conv_of(bool depthwise, const Window& window) {
    const int32_t inputs = shape()[3], outputs = depthwise ? inputs * window.multiplier : range(1, 5);
    const ir::Shape dims = depthwise ? ir::Shape{1, window.kernel, window.kernel, outputs}
                                     : ir::Shape{outputs, window.kernel, window.kernel, inputs};
    ir::ConvAttrs attrs{.padding = window.padding, .stride_h = window.stride, .stride_w = window.stride};
    attrs.dilation_h = attrs.dilation_w = window.dilation;
    attrs.depth_multiplier = window.multiplier;
    if (chance(3)) attrs.activation = ir::Activation::relu;
    const TensorId weights = filter(dims, depthwise ? 3 : 0);
    std::vector<int32_t> biases;
    for (int32_t i = 0; i < outputs; ++i) biases.push_back(range(-500, 500));
    const TensorId bias = chance(3) ? ir::kNoTensor : ints(biases);
    const TensorId to = image({1});
    emit({.kind = depthwise ? OpKind::depthwise_conv_2d : OpKind::conv_2d,
          .attrs = attrs,
          .inputs = {at_, weights, bias}},
         to);
  }
  Window window() {
    Window out{.kernel = range(1, 3), .stride = range(1, 4)};
    if (chance(2) && shape()[1] >= out.kernel && shape()[2] >= out.kernel) out.padding = ir::Padding::valid;
    return out;
  }
  void conv(bool depthwise) {
    Window one = window();
    if (depthwise && chance(2)) one.multiplier = range(1, 3);
    if (chance(3) && shape()[1] == shape()[2]) one = {.kernel = shape()[1], .stride = 3, .padding = ir::Padding::valid};
    conv_of(depthwise, one);
  }
  void dilated() {
    Window one = window();
    one.stride = 1;
    one.dilation = range(1, 3);
    const int extent = (one.kernel - 1) * one.dilation + 1;
    if (shape()[1] < extent || shape()[2] < extent) one.padding = ir::Padding::same;
    conv_of(chance(2), one);
  }
  void activation() {
    const OpKind kind = any_of(std::array{OpKind::relu, OpKind::relu6, OpKind::relu_n1_to_1});
    emit({.kind = kind, .attrs = ir::default_attrs(kind), .inputs = {at_}}, result());
    if (chance(2)) conv(false);
  }
  void maybe_activation() {
    if (chance(2)) activation();
  }

  void padded_conv() {
    const int kernel = range(1, 3);
    std::vector<int32_t> margins(8, 0);
    for (size_t i = 2; i < 6; ++i) margins[i] = chance(2) ? (kernel - 1 + static_cast<int>(i % 2)) / 2 : range(0, 2);
    const TensorId amounts = ints(margins, {4, 2}), to = like(at_);
    emit({.kind = OpKind::pad, .inputs = {at_, amounts}}, to);
    if (shape()[1] < kernel || shape()[2] < kernel) return;
    const bool depthwise = chance(2);
    conv_of(depthwise, {.kernel = kernel, .stride = range(1, 2), .padding = ir::Padding::valid});
  }

  void batched_conv() {
    const int block = range(2, 3), kernel = any_of(std::array{1, 3, 3}), reach = (kernel - 1) * block;
    const int before = chance(4) ? 0 : reach / 2;
    std::vector<int32_t> pads, crops;
    for (int axis = 1; axis < 3; ++axis) {
      const int padded = shape()[axis] + (before == 0 ? 0 : reach), more = (block - padded % block) % block;
      pads.insert(pads.end(), {before, (before == 0 ? 0 : reach - before) + more});
      crops.insert(crops.end(), {0, more});
    }
    const TensorId size = ints({block, block}), margins = ints(pads, {2, 2}), cut = ints(crops, {2, 2});
    TensorId to = like(at_);
    emit({.kind = OpKind::space_to_batch_nd, .inputs = {at_, size, margins}}, to);
    if (shape()[1] < kernel || shape()[2] < kernel) return;
    conv_of(chance(2), {.kernel = kernel, .padding = ir::Padding::valid});
    to = like(at_);
    emit({.kind = OpKind::batch_to_space_nd, .inputs = {at_, size, cut}}, to);
  }

  void average() {
    if (chance(2)) {
      const std::vector<int32_t> kAxes[] = {{1, 2}, {1, 2}, {1}, {2}, {3}};
      const TensorId axes = ints(kAxes[range(0, 4)]), to = result();
      const OpKind kind = chance(4) ? OpKind::sum : OpKind::mean;
      emit({.kind = kind, .attrs = ir::ReduceAttrs{true}, .inputs = {at_, axes}}, to);
      return;
    }
    ir::PoolAttrs attrs{.padding = chance(3) ? ir::Padding::same : ir::Padding::valid};
    attrs.filter_h = range(1, shape()[1]);
    attrs.filter_w = range(1, shape()[2]);
    attrs.stride_h = attrs.stride_w = range(1, 3);
    emit({.kind = OpKind::average_pool_2d, .attrs = attrs, .inputs = {at_}}, like(at_));
  }

  // Between two QUANTIZE there are other types.
  void quantizes() {
    const TensorId from = at_, other = result();
    const bool floats = chance(3);
    ir::Tensor& between = graph_.tensor(other);
    if (floats) {
      between.dtype = DType::float32;
      between.quant = {};
    } else if (chance(2)) {
      between.dtype = dtype_ == DType::int8 ? DType::uint8 : DType::int8;
      between.quant.zero_points[0] += dtype_ == DType::int8 ? 128 : -128;
    }
    emit({.kind = floats ? OpKind::dequantize : OpKind::quantize, .inputs = {at_}}, other);
    emit({.kind = OpKind::quantize, .inputs = {at_}}, chance(2) ? like(from) : image({1}));
    if (chance(2)) conv(chance(2));
  }

  void with_constant() {
    const OpKind kind = any_of(std::array{OpKind::mul, OpKind::add, OpKind::sub});
    const int32_t count = chance(2) ? 1 : shape()[3];
    const ir::Quant quant{{0.002F * static_cast<float>(range(1, 40))}, {chance(2) ? 0 : lowest() + range(0, 255)}, 0};
    const TensorId other = constant(dtype_, {1, 1, 1, count}, bytes(count), quant), to = result();
    ir::Op op{.kind = kind, .attrs = ir::ActivationAttrs{}, .inputs = {at_, other}};
    if (chance(3)) std::swap(op.inputs[0], op.inputs[1]);
    if (chance(3)) op.attrs = ir::ActivationAttrs{ir::Activation::relu};
    emit(std::move(op), to);
    conv(false);
  }

  void transposes() {
    constexpr std::array kOrders = {std::array{0, 3, 1, 2}, std::array{0, 2, 3, 1}, std::array{0, 2, 1, 3},
                                    std::array{0, 1, 2, 3}};
    for (int i = range(1, 3); i > 0; --i) {
      const auto order = any_of(kOrders);
      const TensorId to = like(at_), permutation = ints({order.begin(), order.end()});
      emit({.kind = OpKind::transpose, .inputs = {at_, permutation}}, to);
    }
    if (chance(2)) activation();
  }

  void reshape_to(std::vector<int32_t> dims) {
    const TensorId next_one = like(at_), operand = ints(dims);
    emit({.kind = OpKind::reshape, .attrs = ir::ReshapeAttrs{std::move(dims)}, .inputs = {at_, operand}}, next_one);
  }
  void reshapes() {
    const std::vector<int32_t> back = shape().dims;
    if (chance(2)) {
      reshape_to({1, -1});
    } else {
      const TensorId next_one = like(at_), axis = ints({0});
      emit({.kind = OpKind::expand_dims, .inputs = {at_, axis}}, next_one);
    }
    if (chance(2)) reshape_to({-1});
    reshape_to(back);
    if (chance(3)) reshape_to(back);
    if (chance(2)) activation();
  }
  void tile(const std::vector<int32_t>& times) { emit_like({.kind = OpKind::tile, .inputs = {at_, ints(times)}}); }
  // Repeats rows, then pixels, a few times; sometimes other elements.
  void repeated() {
    const ir::Shape d = shape();
    const int32_t rows = range(1, 3), pixels = range(2, 3);
    reshape_to({d[0], d[1], 1, d[2], d[3]});
    tile(chance(6) ? std::vector{1, 1, 1, rows, 1} : std::vector{1, 1, rows, 1, 1});
    reshape_to({d[0], d[1] * rows, d[2], 1, d[3]});
    tile({1, 1, 1, pixels, 1});
    reshape_to({d[0], d[1] * rows, d[2] * pixels, d[3]});
  }

  // A regular selection of pixels and channels, sometimes an irregular one.
  void slices() {
    const TensorId to = like(at_);
    std::vector<int32_t> begin, size, stride;
    for (int axis = 0; axis < 4; ++axis) {
      const int32_t whole = shape()[axis];
      begin.push_back(axis == 0 || chance(2) ? 0 : range(0, whole - 1));
      size.push_back(axis == 0 || chance(2) ? whole - begin.back() : range(1, whole - begin.back()));
      stride.push_back(axis == 0 || chance(2) ? 1 : range(1, 3));
    }
    std::vector<int32_t> end = begin;
    for (size_t i = 0; i < end.size(); ++i) end[i] += size[i];
    const TensorId from = ints(begin), sizes = ints(size), ends = ints(end), steps = ints(stride);
    const int32_t picks = range(1, 3), channels = shape()[3];
    std::vector<int32_t> order;
    for (int32_t i = 0; i < picks; ++i) order.push_back(range(0, channels - 1));
    const TensorId indices = ints(order);
    switch (range(0, 3)) {
      case 0: emit({.kind = OpKind::slice, .inputs = {at_, from, sizes}}, to); break;
      case 1:
        emit({.kind = OpKind::strided_slice, .attrs = ir::StridedSliceAttrs{}, .inputs = {at_, from, ends, steps}}, to);
        break;
      case 2: emit({.kind = OpKind::space_to_depth, .attrs = ir::BlockAttrs{range(1, 3)}, .inputs = {at_}}, to); break;
      default: emit({.kind = OpKind::gather, .attrs = ir::GatherAttrs{.axis = 3}, .inputs = {at_, indices}}, to);
    }
    if (chance(2)) conv(false);
  }

  // Splits and joins again, or joins twice the same, along any axis.
  void joins() {
    const int axis = range(0, 3);
    const int32_t count = shape()[axis];
    const TensorId whole = at_;
    std::vector<TensorId> pieces = {whole, whole};
    const bool is_split = chance(2);
    if (count > 1 && count < 7 && !chance(4)) {
      pieces.clear();
      std::vector<int32_t> sizes(static_cast<size_t>(count), 1);
      const bool has_sizes = is_split && chance(2);
      while (has_sizes && sizes.size() > 2 && !chance(3)) sizes.pop_back(), ++sizes[0];
      for (size_t i = 0; i < sizes.size(); ++i) pieces.push_back(like(whole));
      ir::Op apart{.kind = OpKind::unpack, .attrs = ir::UnpackAttrs{axis, count}, .inputs = {whole}};
      if (is_split) apart = {.kind = OpKind::split, .attrs = ir::SplitAttrs{count}, .inputs = {ints({axis}), whole}};
      if (has_sizes) {
        apart.kind = OpKind::split_v;
        apart.attrs = ir::SplitAttrs{static_cast<int32_t>(sizes.size())};
        apart.inputs = {whole, ints(sizes), ints({axis})};
      }
      apart.outputs = pieces;
      apart.source_index = static_cast<int32_t>(graph_.ops.size());
      graph_.add_op(std::move(apart));
      if (!has_shapes()) return graph_.ops.pop_back();
      if (chance(3)) unary(OpKind::abs, pieces[0]);
    }
    const auto parts = static_cast<int32_t>(pieces.size());
    const bool is_concat = is_split || pieces[0] == whole;
    ir::Op join{.kind = OpKind::pack, .attrs = ir::PackAttrs{axis, parts}, .inputs = pieces};
    if (is_concat) {
      join.kind = OpKind::concatenation;
      join.attrs = ir::ConcatAttrs{.axis = axis == 3 && chance(2) ? -1 : axis};
    }
    emit(std::move(join), like(whole));
    if (chance(2)) conv(false);
  }

  void slopes() {
    const int32_t count = chance(2) ? 1 : shape()[3];
    if (chance(2)) {
      const TensorId to = result();
      emit({.kind = OpKind::leaky_relu,
            .attrs = ir::LeakyReluAttrs{chance(5)   ? 0
                                        : chance(5) ? -power(-8, 1)
                                                    : power(-8, 1)},
            .inputs = {at_}},
           to);
      return;
    }
    const int32_t zero = chance(2) ? lowest() : lowest() + range(0, 255);
    const float scale = power(-9, -5);
    const TensorId alpha = constant(dtype_, {1, 1, count}, bytes(count), {{scale}, {zero}, 0}), to = result();
    emit({.kind = OpKind::prelu, .inputs = {at_, alpha}}, to);
  }

  // An op of two results computed from one tensor.
  void pairs() {
    const TensorId first = at_, second = chance(2) ? like(first) : image({1});
    emit({.kind = OpKind::abs, .inputs = {first}}, second);
    const OpKind kind = any_of(std::array{OpKind::sub, OpKind::maximum, OpKind::minimum});
    const TensorId to = kind == OpKind::sub ? result() : like(first);
    ir::Op op{.kind = kind, .attrs = ir::default_attrs(kind), .inputs = {first, second}};
    if (chance(3)) std::swap(op.inputs[0], op.inputs[1]);
    if (kind == OpKind::sub && chance(3)) op.attrs = ir::ActivationAttrs{ir::Activation::relu};
    emit(std::move(op), to);
  }

  void transposed_conv() {
    const int outputs = range(1, 4);
    const std::array kernel = {range(1, 5), range(1, 5)};
    ir::ConvAttrs attrs{.padding = chance(2) ? ir::Padding::same : ir::Padding::valid};
    attrs.stride_h = attrs.stride_w = range(1, 3);
    if (chance(3)) attrs.stride_w = range(1, 3);
    if (chance(3)) attrs.activation = ir::Activation::relu;
    std::vector<int32_t> size = {1, 0, 0, outputs};
    for (size_t axis = 1; axis < 3; ++axis) {
      const int32_t inputs = shape()[static_cast<int32_t>(axis)], stride = axis == 1 ? attrs.stride_h : attrs.stride_w;
      size[axis] = attrs.padding == ir::Padding::same ? inputs * stride - range(0, stride - 1)
                                                      : (inputs - 1) * stride + kernel[axis - 1] + range(0, stride - 1);
    }
    const TensorId dims = ints(size), weights = filter({outputs, kernel[0], kernel[1], shape()[3]}, 0);
    ir::Op op{.kind = OpKind::transpose_conv, .attrs = attrs, .inputs = {dims, weights, at_}};
    if (chance(2)) op.inputs.push_back(ints(std::vector<int32_t>(static_cast<size_t>(outputs), range(-500, 500))));
    emit(std::move(op), image({1}));
  }

  void mirrored() {
    ir::MirrorPadAttrs attrs;
    attrs.symmetric = chance(2);
    std::vector<int32_t> amounts(8, 0);
    for (size_t axis = 1; axis < 3; ++axis) {
      const int32_t most = shape()[static_cast<int32_t>(axis)] - (attrs.symmetric ? 0 : 1);
      for (size_t i = 2 * axis; i < 2 * axis + 2; ++i) amounts[i] = range(0, std::min(most, 3));
    }
    emit_like({.kind = OpKind::mirror_pad, .attrs = attrs, .inputs = {at_, ints(amounts, {4, 2})}});
  }

  void deeper() {
    emit_like({.kind = OpKind::pad, .inputs = {at_, ints({0, 0, 0, 0, 0, 0, range(0, 2), range(1, 3)}, {4, 2})}});
  }

  void resized() {
    const OpKind kind = chance(3) ? OpKind::resize_nearest_neighbor : OpKind::resize_bilinear;
    ir::ResizeAttrs attrs;
    (chance(2) ? attrs.half_pixel_centers : attrs.align_corners) = chance(2);
    std::vector<int32_t> size;
    for (const int axis : {1, 2}) {
      const int32_t from = shape()[axis];
      size.push_back(attrs.align_corners && from > 1 ? (from - 1) * range(1, 3) + 1
                                                     : from * any_of(std::array{1, 2, 2, 3, 4}));
    }
    if (chance(4)) size[0] = range(1, 9);
    emit_like({.kind = kind, .attrs = attrs, .inputs = {at_, ints(size)}});
  }

  // Rows of one image as those of several, with ops over these.
  void images() {
    const ir::Shape whole = shape();
    const int count = any_of(std::array{2, 3, 4});
    if (whole[1] % count != 0) return conv(false);
    reshape_to({count, whole[1] / count, whole[2], whole[3]});
    for (int i = range(1, 3); i > 0; --i) {
      if (chance(2)) {
        const bool depthwise = chance(2);
        conv_of(depthwise, {.kernel = range(1, 3)});
      } else {
        const TensorId before = at_, other = like(before), sum = result();
        emit({.kind = OpKind::relu6, .inputs = {before}}, other);
        emit({.kind = OpKind::add, .attrs = ir::ActivationAttrs{}, .inputs = {other, before}}, sum);
      }
      if (chance(4)) graph_.outputs.push_back(at_);
    }
    reshape_to({1, shape()[0] * shape()[1], shape()[2], shape()[3]});
  }

  void max_pool() {
    ir::PoolAttrs attrs{.padding = chance(2) ? ir::Padding::same : ir::Padding::valid};
    attrs.filter_h = range(1, 3), attrs.filter_w = range(1, 3);
    attrs.stride_h = attrs.stride_w = range(1, 2);
    if (chance(4)) attrs.activation = ir::Activation::relu;
    emit({.kind = OpKind::max_pool_2d, .attrs = attrs, .inputs = {at_}}, like(at_));
  }

  void wide_pad() {
    std::vector<int32_t> margins(8, 0);
    for (size_t i = 2; i < 8; ++i) margins[i] = range(0, i < 6 ? 6 : 2);
    const TensorId amounts = ints(margins, {4, 2});
    emit({.kind = OpKind::pad, .inputs = {at_, amounts}}, like(at_));
    if (chance(2)) conv(false);
  }

  // Types may differ only for uint8.
  void mixed_join() {
    std::vector<TensorId> pieces = {at_};
    for (int i = range(1, 2); i > 0; --i) {
      pieces.push_back(dtype_ == DType::uint8 && !chance(4) ? image({1}) : like(at_));
      emit({.kind = OpKind::abs, .inputs = {pieces[0]}}, pieces.back());
    }
    const TensorId to = dtype_ == DType::uint8 && chance(2) ? image({1}) : like(pieces[0]);
    emit({.kind = OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = 3}, .inputs = pieces}, to);
  }

  void of_constants() {
    const int32_t count = shape()[3];
    const TensorId known = constant(dtype_, {1, 1, 1, count}, bytes(count), graph_.tensor(at_).quant),
                   folded = like(known);
    const TensorId to = like(at_), back = at_;
    emit({.kind = OpKind::relu, .inputs = {known}}, folded);
    at_ = back;
    emit({.kind = OpKind::maximum, .inputs = {back, folded}}, to);
  }

  void dense() {
    const auto elems = static_cast<int32_t>(shape().elems());
    const int32_t depth = chance(2) ? elems : shape()[3], rows = elems / depth, outputs = range(1, 5);
    reshape_to({rows, depth});
    const TensorId weights = filter({outputs, depth}, 0), to = image({1});
    emit({.kind = OpKind::fully_connected, .attrs = ir::FullyConnectedAttrs{}, .inputs = {at_, weights}}, to);
    reshape_to({1, 1, rows, outputs});
  }

  TensorId at_ = ir::kNoTensor;
};

}  // namespace skillet::passes
