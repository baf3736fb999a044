// Images and windows of ops, as the chip uses them.
#include <algorithm>

#include "base/int_math.h"
#include "npus/vivante/compiler/support.h"

namespace skillet::npus::vivante {

using ir::OpKind;

bool is_sign_change(const ir::Graph& graph, const ir::Op& op) {
  if (op.kind != OpKind::quantize) return false;
  const ir::Tensor &in = graph.tensor(op.inputs[0]), &out = graph.tensor(op.outputs[0]);
  return in.quant.scale() == out.quant.scale() && unsigned_zero_point(in) == unsigned_zero_point(out);
}

bool is_other_layout(const ir::Graph& graph, const ir::Op& op) {
  const std::vector<int32_t> permutation = graph.tensor(op.input(1)).values<int32_t>();
  return permutation == std::vector<int32_t>{0, 3, 1, 2} || permutation == std::vector<int32_t>{0, 2, 3, 1};
}

Image image_of(const ir::Shape& shape) {
  // A batch other than 1 is visible as bytes() != elems().
  return {shape.back(1), shape.back(2), shape.back(0)};
}

namespace {

// Without padding the formula gives 0, because the windows end within the image.
int32_t pad_before(int32_t in, int32_t out, int32_t kernel, int32_t stride) {
  return static_cast<int32_t>(std::max<int64_t>((int64_t{out} - 1) * stride + kernel - in, 0) / 2);
}

int32_t largest_divisor(int32_t value, int32_t limit) {
  int32_t divisor = std::min(value, limit);
  while (value % divisor != 0) --divisor;
  return divisor;
}

// The input is a vector; if filters are lists it may be divided into rows and planes.
ConvShape fully_connected_shape(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape& filter = graph.tensor(op.input(1)).shape;
  const int32_t depth = filter.back(0);
  ConvShape s{.out = {1, 1, filter.back(1)}};
  if (hw::generation_of(chip).linear_filters && depth > 0) {
    s.kernel_width = largest_divisor(depth, chip.kernel_size_max);
    s.kernel_height = largest_divisor(depth / s.kernel_width, chip.kernel_size_max);
  }
  s.in = {s.kernel_width, s.kernel_height, depth / (s.kernel_width * s.kernel_height)};
  return s;
}

}  // namespace

ConvShape conv_shape(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (op.kind == OpKind::fully_connected) return fully_connected_shape(chip, graph, op);
  const auto& attrs = op.as<ir::ConvAttrs>();
  const ir::Shape& filter = graph.tensor(op.input(1)).shape;
  ConvShape s{.in = image_of(graph.tensor(op.input(0)).shape), .out = image_of(graph.tensor(op.outputs[0]).shape)};
  s.kernel_height = filter.back(2);
  s.kernel_width = filter.back(1);
  s.stride = attrs.stride_h;
  s.depthwise = op.kind == OpKind::depthwise_conv_2d;
  s.pointwise = s.kernel_height == 1 && s.kernel_width == 1;
  if (s.depthwise) s.multiplier = std::max(s.out.channels / std::max(s.in.channels, 1), 1);
  const std::vector<float>& scales = graph.tensor(op.input(1)).quant.scales;
  s.divided = std::ranges::any_of(scales, [&](float scale) { return scale != scales.front(); });
  s.pad_x = pad_before(s.in.width, s.out.width, s.kernel_width, s.stride);
  s.pad_y = pad_before(s.in.height, s.out.height, s.kernel_height, s.stride);
  return s;
}

Image reshuffled_image(const ConvShape& s) {
  return {s.out.width + ceil_div(s.kernel_width, 2) - 1, s.out.height + ceil_div(s.kernel_height, 2) - 1,
          4 * s.in.channels};
}

Image recorded_reshuffled_image(const ConvShape& s) {
  const auto is_padded = [&s](int32_t in, int32_t out, int32_t kernel) { return (out - 1) * s.stride + kernel > in; };
  const bool padded =
      is_padded(s.in.width, s.out.width, s.kernel_width) || is_padded(s.in.height, s.out.height, s.kernel_height);
  const auto size = [&](int32_t in, int32_t kernel) { return ceil_div(in, 2) + (padded ? kernel / 2 : 0); };
  return {size(s.in.width, s.kernel_width), size(s.in.height, s.kernel_height), 4 * s.in.channels};
}

// A native job has as many input planes as output planes.
bool is_native_depthwise(const hw::ChipRow& chip, const ConvShape& s) {
  return s.depthwise && s.multiplier == 1 && !s.divided && chip.has(hw::kDepthwise);
}

StrideMethod stride_method(const hw::ChipRow& chip, const ConvShape& s) {
  if (s.stride == 1) return StrideMethod::none;
  if (is_native_depthwise(chip, s)) return StrideMethod::first_pixel;
  if (!chip.has(hw::kFirstPixelPooling)) return StrideMethod::reshuffle;
  if (s.pointwise && !s.depthwise) {
    const hw::Generation& g = hw::generation_of(chip);
    const bool small = s.in.height <= g.reshuffled_rows_max || s.in.channels <= g.reshuffled_channels_max;
    return small ? StrideMethod::reshuffle : StrideMethod::first_pixel;
  }
  if (!s.depthwise) return StrideMethod::reshuffle;
  // Small depthwise images avoid first-pixel pooling; 6 and 7 are wrong in the recorded driver (section 8.1).
  const auto small = [](int32_t size) { return size >= 3 && size <= 7; };
  return small(s.in.height) || small(s.in.width) ? StrideMethod::reshuffle : StrideMethod::first_pixel;
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

}  // namespace skillet::npus::vivante
