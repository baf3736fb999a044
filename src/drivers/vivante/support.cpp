#include "drivers/vivante/support.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/int_math.h"

namespace skillet::drivers::vivante {
namespace {

using driver::Support;
using ir::OpKind;

constexpr int32_t kMaxImageSize = 8191;  // 13-bit fields
constexpr int32_t kMaxChannels = 16383;  // 14-bit field
constexpr int32_t kMaxTpSize = 32767;    // signed 16-bit windows
constexpr int32_t kMaxProvenKernel = 5;
constexpr int32_t kMaxPad = 2;
constexpr float kMaxScale = 65536.0F, kMinScale = 0x1p-112F;

Support check_activation_tensor(const ir::Graph& graph, ir::TensorId id) {
  const ir::Tensor& t = graph.tensor(id);
  if (!ir::is_8bit(t.dtype))
    return Support::no("'{}' is {}; the chip works on 8-bit tensors", t.name, dtype_name(t.dtype));
  if (t.quant.empty()) return Support::no("'{}' is not quantized", t.name);
  if (t.quant.per_channel()) return Support::no("'{}' is an activation quantized per channel", t.name);
  if (t.shape.elems() == 0) return Support::no("'{}' has no elements", t.name);
  const Image image = image_of(t.shape);
  if (image.bytes() != t.shape.elems())
    return Support::no("'{}' has shape {}; the chip runs batch 1", t.name, t.shape.to_string());
  if (image.height > kMaxTpSize || int64_t{image.width} * image.channels > 2 * kMaxTpSize + 1)
    return Support::no("'{}' has shape {}; too large for the layout change", t.name, t.shape.to_string());
  return Support::yes();
}

bool same_quantization(const ir::Tensor& a, const ir::Tensor& b) {
  return a.dtype == b.dtype && a.quant.scale() == b.quant.scale() && a.quant.zero_point() == b.quant.zero_point();
}

// Largest quantized value of the type, as unsigned.
bool saturates_at_six(const ir::Tensor& out) {
  const float steps = std::round(6.0F / out.quant.scale());
  return steps + static_cast<float>(unsigned_zero_point(out)) >= 255.0F;
}

Support check_activation(const ir::Tensor& out, ir::Activation activation) {
  switch (activation) {
    case ir::Activation::none:
    case ir::Activation::relu: return Support::yes();
    case ir::Activation::relu6:
      if (saturates_at_six(out)) return Support::yes();
      return Support::no("fused RELU6, but '{}' reaches beyond 6 (scale {}, zero point {})", out.name,
                         out.quant.scale(), out.quant.zero_point());
    default: return Support::no("fused activation {} is not available", activation_name(activation));
  }
}

// Per-channel scales that are all the same are a per-tensor scale written differently.
bool uniform(const ir::Quant& quant) {
  return std::all_of(quant.scales.begin(), quant.scales.end(), [&](float s) { return s == quant.scales[0]; }) &&
         std::all_of(quant.zero_points.begin(), quant.zero_points.end(),
                     [&](int32_t z) { return z == quant.zero_points[0]; });
}

Support check_filter(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor& input = graph.tensor(op.input(0));
  const ir::Tensor& filter = graph.tensor(op.input(1));
  if (!filter.is_constant()) return Support::no("filter '{}' is not constant", filter.name);
  if (filter.dtype != input.dtype)
    return Support::no("filter '{}' is {} but the input is {}", filter.name, dtype_name(filter.dtype),
                       dtype_name(input.dtype));
  if (filter.quant.empty()) return Support::no("filter '{}' is not quantized", filter.name);
  if (!uniform(filter.quant))
    return Support::no("filter '{}' is quantized per channel; the chip has one scale per job", filter.name);
  if (op.input(2) == ir::kNoTensor) return Support::yes();
  const ir::Tensor& bias = graph.tensor(op.input(2));
  if (!bias.is_constant() || bias.dtype != ir::DType::int32)
    return Support::no("bias '{}' is not a constant int32 tensor", bias.name);
  if (bias.shape.elems() != graph.tensor(op.outputs[0]).shape.back(0))
    return Support::no("bias '{}' has {} elements", bias.name, bias.shape.elems());
  return Support::yes();
}

Support check_scale(const ir::Graph& graph, ir::OpId op) {
  const float scale = conv_scale(graph, op);
  if (!(scale >= kMinScale && scale < kMaxScale))
    return Support::no("requantization scale {} is outside the chip's range", scale);
  return Support::yes();
}

Support check_conv_size(const hw::ChipRow& chip, const ConvShape& s) {
  const bool doubled = stride_method(s) == StrideMethod::first_pixel;
  const int32_t scale = doubled ? 2 : 1;
  const int32_t channels = s.in.channels * (stride_method(s) == StrideMethod::reshuffle ? 4 : 1);
  if (std::max({s.in.width, s.in.height, s.out.width * scale, s.out.height * scale}) > kMaxImageSize)
    return Support::no("image larger than {} px", kMaxImageSize);
  if (std::max(channels, s.out.channels) > kMaxChannels) return Support::no("more than {} channels", kMaxChannels);
  const int32_t divide = stride_method(s) == StrideMethod::reshuffle ? 2 : 1;
  const int32_t kernel = ceil_div(std::max(s.kernel_height, s.kernel_width), divide);
  if (kernel > chip.kernel_size_max) return Support::no("filter larger than {} px", chip.kernel_size_max);
  if (divide == 1 && std::max(s.pad_x, s.pad_y) > 1 << (chip.offset_bits - 1))
    return Support::no("padding of more than {} px", 1 << (chip.offset_bits - 1));
  if (kernel > kMaxProvenKernel) return Support::yes_unproven("filters beyond 5x5 were never seen on silicon");
  if (s.kernel_height != s.kernel_width)
    return Support::yes_unproven("filters that are not square were never seen on silicon");
  if (s.in.width != s.in.height)
    return Support::yes_unproven("images that are not square were never seen right on silicon");
  return Support::yes();
}

#define RETURN_IF_NO(expression) \
  if (auto support = (expression); !support.ok) return support

Support check_conv(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const auto& attrs = op.as<ir::ConvAttrs>();
  RETURN_IF_NO(check_filter(graph, op));
  RETURN_IF_NO(check_activation(graph.tensor(op.outputs[0]), attrs.activation));
  RETURN_IF_NO(check_scale(graph, id));
  if (attrs.dilation_h != 1 || attrs.dilation_w != 1)
    return Support::no("dilation {}x{}", attrs.dilation_h, attrs.dilation_w);
  if (attrs.stride_h != attrs.stride_w || attrs.stride_h > 2)
    return Support::no("stride {}x{}; the chip does 1x1 and 2x2", attrs.stride_h, attrs.stride_w);
  const ConvShape shape = conv_shape(graph, id);
  if (!shape.depthwise && graph.tensor(op.input(1)).shape.back(0) != shape.in.channels)
    return Support::no("grouped convolution");
  if (shape.multiplier != 1) {
    RETURN_IF_NO(check_conv_size(chip, shape));
    return Support::yes_unproven("depth multiplier other than 1 was never seen on silicon");
  }
  return check_conv_size(chip, shape);
}

Support check_fully_connected(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  RETURN_IF_NO(check_filter(graph, op));
  RETURN_IF_NO(check_activation(graph.tensor(op.outputs[0]), op.as<ir::FullyConnectedAttrs>().activation));
  RETURN_IF_NO(check_scale(graph, id));
  const int64_t depth = graph.tensor(op.input(1)).shape.back(0);
  if (graph.tensor(op.input(0)).shape.elems() != depth)
    return Support::no("more than one row of input; the chip runs batch 1");
  RETURN_IF_NO(check_conv_size(chip, conv_shape(graph, id)));
  return Support::yes_unproven("fully connected layers run as 1x1 convolutions, which no known driver does");
}

Support check_add(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& a = graph.tensor(op.input(0));
  const ir::Tensor& b = graph.tensor(op.input(1));
  const ir::Tensor& out = graph.tensor(op.outputs[0]);
  if (a.is_constant() || b.is_constant()) return Support::no("an operand is constant");
  if (a.shape != b.shape)
    return Support::no("operands of shapes {} and {}: no broadcast", a.shape.to_string(), b.shape.to_string());
  const ir::Activation activation = op.as<ir::ActivationAttrs>().activation;
  RETURN_IF_NO(check_activation(out, activation));
  if (activation != ir::Activation::none && unsigned_zero_point(out) != 0)
    return Support::no("fused activation on an addition whose output zero point is not the lowest value");
  const float scale = a.quant.scale() / out.quant.scale();
  if (!(scale >= kMinScale && scale < 4096.0F))
    return Support::no("requantization scale {} is outside the chip's range", scale);
  const auto shape = addition_shape(a.shape);
  if (!shape)
    return Support::no("{} elements cannot be cut into rows and columns of at most {}", a.shape.elems(), kMaxImageSize);
  return Support::yes();
}

bool is_channel_axis(const ir::Shape& shape, int32_t axis) { return axis == -1 || axis == shape.rank() - 1; }

Support check_concatenation(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& out = graph.tensor(op.outputs[0]);
  const auto& attrs = op.as<ir::ConcatAttrs>();
  if (!is_channel_axis(out.shape, attrs.axis))
    return Support::no("axis {}; the chip's layout concatenates channels only", attrs.axis);
  if (attrs.activation != ir::Activation::none)
    return Support::no("fused activation {}", activation_name(attrs.activation));
  for (const ir::TensorId input : op.inputs) {
    const ir::Tensor& t = graph.tensor(input);
    if (t.is_constant()) return Support::no("'{}' is constant", t.name);
    if (!same_quantization(t, out)) return Support::no("'{}' is quantized differently from the output", t.name);
  }
  return Support::yes();
}

Support check_split(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& axis = graph.tensor(op.input(0));
  const ir::Tensor& input = graph.tensor(op.input(1));
  if (!axis.is_constant()) return Support::no("axis is not constant");
  const std::vector<int32_t> value = axis.values<int32_t>();
  if (value.size() != 1 || !is_channel_axis(input.shape, value[0]))
    return Support::no("the chip's layout splits channels only");
  for (const ir::TensorId output : op.outputs) {
    if (!same_quantization(graph.tensor(output), input))
      return Support::no("'{}' is quantized differently", graph.tensor(output).name);
  }
  return Support::yes_unproven("splits without a conflict of places were never recorded");
}

Support check_pad(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (!graph.tensor(op.input(1)).is_constant()) return Support::no("paddings are not constant");
  if (!same_quantization(graph.tensor(op.input(0)), graph.tensor(op.outputs[0])))
    return Support::no("input and output are quantized differently");
  const PadAmounts pad = pad_amounts(graph, id);
  if (pad.batch != 0) return Support::no("pads the batch");
  if (pad.largest() > kMaxPad) return Support::no("pads by {}; the chip does at most {}", pad.largest(), kMaxPad);
  return Support::yes();
}

Support check_same_bytes(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (graph.tensor(op.input(0)).is_constant()) return Support::no("input is constant");
  if (!same_quantization(graph.tensor(op.input(0)), graph.tensor(op.outputs[0])))
    return Support::no("input and output are quantized differently");
  return Support::yes();
}

Support check_transpose(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  RETURN_IF_NO(check_same_bytes(chip, graph, id));
  if (!graph.tensor(op.input(1)).is_constant()) return Support::no("permutation is not constant");
  const std::vector<int32_t> permutation = graph.tensor(op.input(1)).values<int32_t>();
  if (permutation == std::vector<int32_t>{0, 3, 1, 2} || permutation == std::vector<int32_t>{0, 2, 3, 1})
    return Support::yes();
  return Support::no("permutation [{}]; the chip does [0, 3, 1, 2] and [0, 2, 3, 1]", fmt::join(permutation, ", "));
}

Support check_table(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (graph.tensor(op.input(0)).is_constant()) return Support::no("input is constant");
  return Support::yes();
}

struct SupportRow {
  OpKind kind;
  Support (*check)(const hw::ChipRow&, const ir::Graph&, ir::OpId);
};
constexpr SupportRow kRows[] = {
    {OpKind::conv_2d, check_conv},
    {OpKind::depthwise_conv_2d, check_conv},
    {OpKind::fully_connected, check_fully_connected},
    {OpKind::add, check_add},
    {OpKind::concatenation, check_concatenation},
    {OpKind::split, check_split},
    {OpKind::pad, check_pad},
    {OpKind::reshape, check_same_bytes},
    {OpKind::transpose, check_transpose},
    {OpKind::relu, check_table},
    {OpKind::abs, check_table},
    {OpKind::logistic, check_table},
};

// The operands that hold activations; the rest (filter, bias, axis, shape) is checked by the row.
std::vector<ir::TensorId> activations(const ir::Op& op) {
  std::vector<ir::TensorId> ids;
  switch (op.kind) {
    case OpKind::add:
    case OpKind::concatenation: ids = op.inputs; break;
    case OpKind::split: ids = {op.input(1)}; break;
    default: ids = {op.input(0)}; break;
  }
  ids.insert(ids.end(), op.outputs.begin(), op.outputs.end());
  return ids;
}

}  // namespace

Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (!chip.has(hw::kSupported)) return Support::no("{} has no driver yet", chip.title);
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const SupportRow& r) { return r.kind == op.kind; });
  if (row == std::end(kRows)) return Support::no("the chip's driver has no {}", op_name(op));
  for (const ir::TensorId tensor : activations(op)) RETURN_IF_NO(check_activation_tensor(graph, tensor));
  return row->check(chip, graph, id);
}

Image image_of(const ir::Shape& shape) {
  // A batch other than 1 shows as bytes() != elems().
  return {shape.back(1), shape.back(2), shape.back(0)};
}

uint8_t unsigned_zero_point(const ir::Tensor& tensor) {
  return static_cast<uint8_t>(tensor.quant.zero_point() + (tensor.dtype == ir::DType::int8 ? 128 : 0));
}

namespace {

int32_t pad_before(int32_t in, int32_t out, int32_t kernel, int32_t stride, ir::Padding padding) {
  if (padding == ir::Padding::valid) return 0;
  return std::max((out - 1) * stride + kernel - in, 0) / 2;
}

ConvShape fully_connected_shape(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape& filter = graph.tensor(op.input(1)).shape;
  return {.in = {1, 1, filter.back(0)}, .out = {1, 1, filter.back(1)}};
}

}  // namespace

ConvShape conv_shape(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (op.kind == OpKind::fully_connected) return fully_connected_shape(graph, op);
  const auto& attrs = op.as<ir::ConvAttrs>();
  const ir::Shape& filter = graph.tensor(op.input(1)).shape;
  ConvShape s{.in = image_of(graph.tensor(op.input(0)).shape), .out = image_of(graph.tensor(op.outputs[0]).shape)};
  s.kernel_height = filter.back(2);
  s.kernel_width = filter.back(1);
  s.stride = attrs.stride_h;
  s.depthwise = op.kind == OpKind::depthwise_conv_2d;
  if (s.depthwise) s.multiplier = std::max(s.out.channels / std::max(s.in.channels, 1), 1);
  s.pad_x = pad_before(s.in.width, s.out.width, s.kernel_width, s.stride, attrs.padding);
  s.pad_y = pad_before(s.in.height, s.out.height, s.kernel_height, s.stride, attrs.padding);
  return s;
}

StrideMethod stride_method(const ConvShape& s) {
  if (s.stride == 1) return StrideMethod::none;
  if (s.kernel_height == 1 && s.kernel_width == 1 && !s.depthwise) return StrideMethod::first_pixel;
  if (!s.depthwise) return StrideMethod::reshuffle;
  // Small depthwise images avoid first-pixel pooling; 6 and 7 are wrong in the recorded driver (section 8.1).
  const auto small = [](int32_t size) { return size >= 3 && size <= 7; };
  return small(s.in.height) || small(s.in.width) ? StrideMethod::reshuffle : StrideMethod::first_pixel;
}

float conv_scale(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const float product = graph.tensor(op.input(0)).quant.scale() * graph.tensor(op.input(1)).quant.scale();
  return product / graph.tensor(op.outputs[0]).quant.scale();
}

std::optional<AdditionShape> addition_shape(const ir::Shape& shape) {
  const Image image = image_of(shape);
  const int64_t elems = shape.elems(), plane = image.plane_bytes();
  int64_t w = 0;
  for (const int64_t candidate : {128, 64, 32}) {
    if (w == 0 && plane % candidate == 0) w = candidate;
  }
  for (int64_t candidate = 63; w == 0; --candidate) {
    if (plane % candidate == 0) w = candidate;
  }
  // The recorded rule overflows the width field on large tensors; any other divisor computes the same.
  if (elems / w > kMaxImageSize) {
    for (w = ceil_div(elems, kMaxImageSize); w <= kMaxImageSize && elems % w != 0;) ++w;
    if (w > kMaxImageSize) return std::nullopt;
  }
  return AdditionShape{static_cast<int32_t>(elems / w), static_cast<int32_t>(w)};
}

int32_t PadAmounts::largest() const { return std::max({before_h, after_h, before_w, after_w, before_c, after_c}); }

PadAmounts pad_amounts(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& constant = graph.tensor(op.input(1));
  std::vector<int32_t> values;
  if (constant.dtype == ir::DType::int64) {
    for (const int64_t v : constant.values<int64_t>())
      values.push_back(static_cast<int32_t>(std::clamp<int64_t>(v, 0, 65535)));
  } else {
    values = constant.values<int32_t>();
  }
  PadAmounts pad;
  const auto rank = static_cast<int>(values.size() / 2);
  const auto value = [&](int from_back, int side) {
    return from_back < rank ? values[static_cast<size_t>(2 * (rank - 1 - from_back) + side)] : 0;
  };
  pad.before_c = value(0, 0), pad.after_c = value(0, 1);
  pad.before_w = value(1, 0), pad.after_w = value(1, 1);
  pad.before_h = value(2, 0), pad.after_h = value(2, 1);
  for (int i = 3; i < rank; ++i) pad.batch += value(i, 0) + value(i, 1);
  return pad;
}

}  // namespace skillet::drivers::vivante
