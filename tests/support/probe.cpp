#include "probe.h"

#include <cmath>

namespace skillet::support {
namespace {

using ir::DType;
using ir::OpKind;
using ir::TensorId;

class Maker {
 public:
  Maker(OpKind kind, const Form& form, Type type)
      : form_(form), dtype_(type == Type::uint8 ? DType::uint8 : DType::int8), type_(type) {
    op_.kind = kind;
    op_.source_index = 0;
    op_.attrs = ir::default_attrs(kind);
  }

  Result<ir::Graph> run() {
    set_attrs();
    add_operands();
    const size_t pieces = op_.kind == OpKind::split || op_.kind == OpKind::split_v || op_.kind == OpKind::unpack
                              ? static_cast<size_t>(form_.amount)
                              : 1;
    for (size_t i = 0; i < pieces; ++i) op_.outputs.push_back(result());
    graph_.outputs = op_.outputs;
    graph_.add_op(op_);
    SK_TRY(ir::infer_shapes(graph_));
    SK_TRY(ir::verify(graph_));
    return std::move(graph_);
  }

 private:
  static constexpr float kScale = 0.05F, kWeightScale = 0.01F;

  ir::Shape image() const { return {form_.batch, form_.height, form_.width, form_.channels}; }

  void set_attrs() {
    const ir::Padding padding = form_.valid ? ir::Padding::valid : ir::Padding::same;
    if (auto* conv = std::get_if<ir::ConvAttrs>(&op_.attrs)) {
      *conv = {.padding = padding, .stride_h = form_.stride, .stride_w = form_.stride, .dilation_h = form_.dilation};
      conv->dilation_w = form_.dilation;
      conv->depth_multiplier = form_.multiplier;
      conv->activation = form_.activation;
    } else if (auto* pool = std::get_if<ir::PoolAttrs>(&op_.attrs)) {
      *pool = {.padding = padding, .stride_h = form_.stride, .stride_w = form_.stride, .filter_h = form_.kernel};
      pool->filter_w = form_.kernel;
    } else if (auto* dense = std::get_if<ir::FullyConnectedAttrs>(&op_.attrs)) {
      dense->activation = form_.activation;
    } else if (auto* sum = std::get_if<ir::ActivationAttrs>(&op_.attrs)) {
      sum->activation = form_.activation;
    } else if (auto* join = std::get_if<ir::ConcatAttrs>(&op_.attrs)) {
      join->axis = form_.axis;
    } else if (auto* split = std::get_if<ir::SplitAttrs>(&op_.attrs)) {
      split->count = form_.amount;
    } else if (auto* pack = std::get_if<ir::PackAttrs>(&op_.attrs)) {
      *pack = {.axis = 0, .count = 2};
    } else if (auto* unpack = std::get_if<ir::UnpackAttrs>(&op_.attrs)) {
      *unpack = {.axis = form_.axis, .count = form_.amount};
    } else if (auto* leaky = std::get_if<ir::LeakyReluAttrs>(&op_.attrs)) {
      leaky->alpha = 0.1F;
    } else if (auto* reduce = std::get_if<ir::ReduceAttrs>(&op_.attrs)) {
      reduce->keep_dims = true;
    } else if (auto* resize = std::get_if<ir::ResizeAttrs>(&op_.attrs)) {
      resize->half_pixel_centers = form_.half_pixels;
    } else if (auto* block = std::get_if<ir::BlockAttrs>(&op_.attrs)) {
      block->block_size = form_.amount;
    } else if (auto* reshape = std::get_if<ir::ReshapeAttrs>(&op_.attrs)) {
      reshape->shape = form_.list;
    } else if (auto* squeeze = std::get_if<ir::SqueezeAttrs>(&op_.attrs)) {
      squeeze->axes = form_.list;
    }
  }

  void add_operands() {
    switch (op_.kind) {
      case OpKind::conv_2d:
      case OpKind::depthwise_conv_2d: return add_conv();
      case OpKind::transpose_conv: return add_transpose_conv();
      case OpKind::fully_connected:
        return operands(
            {input({form_.batch, form_.channels}), filter({form_.outputs, form_.channels}, 0), bias(form_.outputs)});
      case OpKind::add:
      case OpKind::sub:
      case OpKind::mul:
      case OpKind::maximum:
      case OpKind::minimum:
      case OpKind::squared_difference: return operands({input(image()), second()});
      case OpKind::concatenation:
      case OpKind::pack: return operands({input(image()), input(image())});
      case OpKind::split: return operands({ints({form_.axis}), input(image())});
      case OpKind::split_v: return operands({input(image()), ints(sizes()), ints({form_.axis})});
      case OpKind::pad:
      case OpKind::mirror_pad: return operands({input(image()), margins()});
      case OpKind::prelu: return operands({input(image()), number()});
      case OpKind::mean:
      case OpKind::sum:
      case OpKind::reduce_max:
      case OpKind::reduce_min: return operands({input(image()), ints(form_.list)});
      case OpKind::arg_max: return operands({input(image()), ints({form_.axis})});
      case OpKind::resize_bilinear:
      case OpKind::resize_nearest_neighbor:
        return operands({input(image()), ints({form_.height * form_.amount, form_.width * form_.amount})});
      case OpKind::transpose:
      case OpKind::reshape:
      case OpKind::expand_dims: return operands({input(image()), ints(form_.list)});
      case OpKind::slice:
        return operands({input(image()), ints({0, 1, 1, 0}), ints({1, form_.height - 1, form_.width - 1, -1})});
      case OpKind::strided_slice:
        return operands({input(image()), ints({0, 0, 0, 0}), ints({1, form_.height, form_.width, form_.channels}),
                         ints({1, form_.stride, form_.stride, 1})});
      case OpKind::space_to_batch_nd:
      case OpKind::batch_to_space_nd: return operands({input(image()), ints({2, 2}), zeros({2, 2})});
      default: return operands({input(image())});
    }
  }

  void add_conv() {
    const bool depthwise = op_.kind == OpKind::depthwise_conv_2d;
    const int width = form_.kernel_width == 0 ? form_.kernel : form_.kernel_width;
    const int outputs = depthwise ? form_.channels * form_.multiplier : form_.outputs;
    const ir::Shape shape = depthwise ? ir::Shape{1, form_.kernel, width, outputs}
                                      : ir::Shape{outputs, form_.kernel, width, form_.channels};
    operands({input(image()), filter(shape, depthwise ? 3 : 0), bias(outputs)});
  }
  void add_transpose_conv() {
    const ir::Shape shape{form_.outputs, form_.kernel, form_.kernel, form_.channels};
    const TensorId size = ints({1, form_.height * form_.stride, form_.width * form_.stride, form_.outputs});
    const TensorId weights = filter(shape, 0);
    operands({size, weights, input(image())});
  }
  void operands(std::vector<TensorId> ids) { op_.inputs = std::move(ids); }

  int32_t zero() const { return dtype_ == DType::uint8 ? 128 : 0; }
  TensorId add(ir::Tensor tensor) {
    tensor.name = std::string(1, static_cast<char>('a' + graph_.tensors.size()));
    return graph_.add_tensor(std::move(tensor));
  }
  TensorId input(ir::Shape shape) {
    ir::Tensor tensor{.dtype = dtype_, .shape = std::move(shape), .quant = {{kScale}, {zero()}, 0}};
    graph_.inputs.push_back(add(std::move(tensor)));
    return graph_.inputs.back();
  }
  TensorId constant(DType dtype, ir::Shape shape, Bytes bytes, ir::Quant quant = {}) {
    ir::Tensor tensor{.dtype = dtype, .shape = std::move(shape), .quant = std::move(quant)};
    ir::set_constant(tensor, std::move(bytes));
    return add(std::move(tensor));
  }
  TensorId ints(const std::vector<int32_t>& values) {
    Bytes bytes(values.size() * 4);
    for (size_t i = 0; i < values.size(); ++i) store_le(bytes.data() + 4 * i, values[i]);
    return constant(DType::int32, {static_cast<int32_t>(values.size())}, std::move(bytes));
  }
  TensorId zeros(ir::Shape shape) {
    const auto count = static_cast<size_t>(shape.elems());
    return constant(DType::int32, std::move(shape), Bytes(4 * count));
  }
  TensorId margins() {
    Bytes bytes(32);
    const size_t first = form_.axis == 3 ? 2 : 6, count = form_.axis == 3 ? 4 : 2;  // rows and columns, or channels
    for (size_t i = first; i < first + count; ++i) store_le(bytes.data() + 4 * i, form_.amount);
    return constant(DType::int32, {4, 2}, std::move(bytes));
  }
  TensorId number() {
    return constant(dtype_, {1, 1, 1, form_.channels}, Bytes(static_cast<size_t>(form_.channels), 140),
                    {{kWeightScale}, {zero()}, 0});
  }
  TensorId second() {
    if (form_.number) return constant(dtype_, {}, Bytes(1, 140), {{kWeightScale}, {zero()}, 0});
    return form_.constant ? number() : input(image());
  }
  std::vector<int32_t> sizes() const {
    return std::vector<int32_t>(static_cast<size_t>(form_.amount), form_.channels / form_.amount);
  }

  // Unequal bytes, so that groups of scales do not become equal.
  TensorId filter(ir::Shape shape, int axis) {
    Bytes bytes(static_cast<size_t>(shape.elems()));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
    ir::Quant quant{{kWeightScale}, {zero()}, axis};
    if (type_ == Type::int8_per_channel) {
      const auto channels = static_cast<size_t>(shape[axis]);
      quant.zero_points.assign(channels, 0);
      quant.scales.clear();
      for (size_t i = 0; i < channels; ++i) quant.scales.push_back(kWeightScale * (1 + 0.01F * static_cast<float>(i)));
    }
    depth_ = static_cast<double>(shape.elems()) / shape[axis];
    return constant(dtype_, std::move(shape), std::move(bytes), std::move(quant));
  }
  TensorId bias(int count) { return zeros({count}); }

  TensorId result() {
    ir::Tensor tensor{.dtype = dtype_, .shape = {1}, .quant = {{kScale}, {zero()}, 0}};
    if (has_weights(op_.kind))
      tensor.quant.scales = {static_cast<float>(kScale * kWeightScale * std::sqrt(depth_) * 120)};
    if (op_.kind == OpKind::add || op_.kind == OpKind::sub || form_.other_scale) tensor.quant.scales = {kScale * 2};
    if (op_.kind == OpKind::mul || op_.kind == OpKind::squared_difference)
      tensor.quant.scales = {kScale * kScale * 100};
    const bool is_fraction = op_.kind == OpKind::logistic || op_.kind == OpKind::softmax;
    if (is_fraction) tensor.quant = {{1.0F / 256}, {zero() - 128}, 0};
    if (op_.kind == OpKind::tanh) tensor.quant = {{1.0F / 128}, {zero()}, 0};
    if (form_.activation == ir::Activation::relu6) tensor.quant = {{6.0F / 255}, {zero() - 128}, 0};
    if (form_.activation == ir::Activation::relu) tensor.quant.zero_points = {zero() - 128};
    if (op_.kind == OpKind::arg_max) tensor.dtype = DType::int32, tensor.quant = {};
    if (op_.kind == OpKind::dequantize) tensor.dtype = DType::float32, tensor.quant = {};
    if (form_.other_type) {
      tensor.dtype = dtype_ == DType::uint8 ? DType::int8 : DType::uint8;
      tensor.quant.zero_points = {128 - zero()};
    }
    return add(std::move(tensor));
  }

  const Form& form_;
  DType dtype_;
  Type type_;
  ir::Op op_;
  ir::Graph graph_;
  double depth_ = 1;
};

}  // namespace

bool has_weights(OpKind kind) {
  return kind == OpKind::conv_2d || kind == OpKind::depthwise_conv_2d || kind == OpKind::transpose_conv ||
         kind == OpKind::fully_connected;
}

Result<ir::Graph> network(OpKind kind, const Form& form, Type type) { return Maker(kind, form, type).run(); }

}  // namespace skillet::support
