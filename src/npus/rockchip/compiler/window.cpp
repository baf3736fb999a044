#include "npus/rockchip/compiler/window.h"

#include <algorithm>

#include "base/int_math.h"

namespace skillet::npus::rockchip {
namespace {

using ir::OpKind;

struct Pads {
  int32_t before = 0, after = 0;
};
Pads same_pads(int32_t in, int32_t out, int32_t stride, int32_t extent) {
  const int32_t total = std::max((out - 1) * stride + extent - in, 0);
  return {total / 2, total - total / 2};
}

void pad(Window& w, ir::Padding padding, const std::optional<ir::RowPads>& rows) {
  if (padding == ir::Padding::same) {
    const Pads y = same_pads(w.in.height, w.out.height, w.stride_y, (w.kernel_height - 1) * w.dilation_y + 1);
    const Pads x = same_pads(w.in.width, w.out.width, w.stride_x, (w.kernel_width - 1) * w.dilation_x + 1);
    w.pad_top = y.before, w.pad_bottom = y.after, w.pad_left = x.before, w.pad_right = x.after;
  }
  if (rows) w.pad_top = rows->top, w.pad_bottom = rows->bottom;
}

void conv(const ir::Graph& graph, const ir::Op& op, Window& w) {
  const auto& attrs = op.as<ir::ConvAttrs>();
  const ir::Shape& filter = graph.tensor(op.inputs[1]).shape;
  w.kernel_height = filter.back(2), w.kernel_width = filter.back(1);
  w.stride_y = attrs.stride_h, w.stride_x = attrs.stride_w;
  w.dilation_y = attrs.dilation_h, w.dilation_x = attrs.dilation_w;
  w.depthwise = op.kind == OpKind::depthwise_conv_2d;
  w.multiplier = w.depthwise ? w.out.channels / std::max(w.in.channels, 1) : 1;
  pad(w, attrs.padding, attrs.rows);
}

void pool(const ir::Op& op, Window& w) {
  const auto& attrs = op.as<ir::PoolAttrs>();
  w.kernel_height = attrs.filter_h, w.kernel_width = attrs.filter_w;
  w.stride_y = attrs.stride_h, w.stride_x = attrs.stride_w;
  w.depthwise = true;
  pad(w, attrs.padding, attrs.rows);
}

// Rows of a matrix become columns of one image row.
void fully_connected(const ir::Graph& graph, const ir::Op& op, Window& w) {
  const ir::Shape& filter = graph.tensor(op.inputs[1]).shape;
  w.out = {1, 1, filter.back(1)};
  if (w.in.channels == filter.back(0)) {
    w.out.width = static_cast<int32_t>(w.in.pixels());
    w.in = {1, w.out.width, w.in.channels};
  } else {
    w.kernel_height = w.in.height, w.kernel_width = w.in.width;
  }
}

// Over rows, columns or both. If one of them remains, it may be treated as the other: the memory is the same.
void reduction(const ir::Graph& graph, const ir::Op& op, Window& w) {
  const std::vector<int32_t> axes = graph.tensor(op.inputs[1]).values<int32_t>();
  const int32_t rank = graph.tensor(op.inputs[0]).shape.rank();
  const auto over = [&](int32_t axis) {
    return std::ranges::any_of(axes, [&](int32_t one) { return (one < 0 ? one + rank : one) == axis; });
  };
  const bool rows = over(rank - 3), columns = over(rank - 2);
  w.kernel_height = rows ? w.in.height : 1, w.kernel_width = columns ? w.in.width : 1;
  w.out = {rows ? 1 : w.in.height, columns ? 1 : w.in.width, w.in.channels};
  w.depthwise = true;
}

}  // namespace

Plane plane_of(const ir::Shape& shape) {
  const int rank = shape.rank();
  return {rank > 2 ? shape.back(2) : 1, rank > 1 ? shape.back(1) : 1, rank > 0 ? shape.back(0) : 1};
}

Flat flat(const Plane& plane) {
  constexpr int32_t kWide = 1024, kWidest = 2047;
  const int64_t rows = int64_t{plane.height} * ceil_div(plane.channels, 16), atoms = rows * plane.width;
  const int64_t half = ceil_div(atoms, int64_t{2});
  Plane part{static_cast<int32_t>(ceil_div(rows, int64_t{2})), plane.width, 32};
  if (rows == 1) part.width = static_cast<int32_t>(half);
  if (part.width > kWidest) part = {static_cast<int32_t>(ceil_div(half, int64_t{kWide})), kWide, 32};
  // A surface at the place of another one was never seen, so a single atom gets a second surface.
  return {part, std::max<int64_t>(atoms - part.pixels(), 1)};
}

Flat halves(int64_t atoms) {
  constexpr int64_t kWide = 1024;
  const int64_t half = ceil_div(atoms, int64_t{2});
  int64_t width = std::min(half, kWide);
  while (half % width != 0) --width;
  return {{static_cast<int32_t>(half / width), static_cast<int32_t>(width), 32}, half};
}

int64_t images_of(const ir::Shape& shape) {
  int64_t images = 1;
  for (int i = 3; i < shape.rank(); ++i) images *= shape.back(i);
  return images;
}

Window window_of(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  Window w{.in = plane_of(graph.tensor(op.inputs[0]).shape), .out = plane_of(graph.tensor(op.outputs[0]).shape)};
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d: conv(graph, op, w); break;
    case OpKind::average_pool_2d:
    case OpKind::max_pool_2d: pool(op, w); break;
    case OpKind::fully_connected: fully_connected(graph, op, w); break;
    case OpKind::mean:
    case OpKind::reduce_max:
    case OpKind::reduce_min: reduction(graph, op, w); break;
    default: break;
  }
  return w;
}

bool is_per_channel(const ir::Quant& quant) {
  return !ir::all_equal(quant.scales) || !ir::all_equal(quant.zero_points);
}

int32_t unsigned_zero(const ir::Tensor& tensor) {
  return tensor.quant.zero_point() + (tensor.dtype == ir::DType::int8 ? 128 : 0);
}

Window with_pads(Window w, const PadAmounts& pads) {
  w.in.height -= pads.top + pads.bottom;
  w.in.width -= pads.left + pads.right;
  w.pad_top += pads.top, w.pad_bottom += pads.bottom;
  w.pad_left += pads.left, w.pad_right += pads.right;
  return w;
}

ir::Activation activation_of(const ir::Op& op) {
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d: return op.as<ir::ConvAttrs>().activation;
    case OpKind::fully_connected: return op.as<ir::FullyConnectedAttrs>().activation;
    case OpKind::average_pool_2d:
    case OpKind::max_pool_2d: return op.as<ir::PoolAttrs>().activation;
    case OpKind::concatenation: return op.as<ir::ConcatAttrs>().activation;
    case OpKind::add:
    case OpKind::sub:
    case OpKind::mul: return op.as<ir::ActivationAttrs>().activation;
    case OpKind::relu: return ir::Activation::relu;
    case OpKind::relu6: return ir::Activation::relu6;
    default: return ir::Activation::none;
  }
}

Limits limits_of(const ir::Tensor& output, ir::Activation activation) {
  constexpr float kSix = 6;
  Limits limits;
  const int32_t zero = unsigned_zero(output);
  const float top = static_cast<float>(255 - zero) * output.quant.scale();
  if (activation != ir::Activation::relu && activation != ir::Activation::relu6) return limits;
  limits.lower = zero > 0;
  if (activation == ir::Activation::relu6 && top > kSix) limits.upper = kSix;
  return limits;
}

std::optional<PadAmounts> pad_amounts(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor& table = graph.tensor(op.inputs[1]);
  const int rank = graph.tensor(op.inputs[0]).shape.rank();
  if (!table.is_constant() || table.dtype != ir::DType::int32 || rank < 3) return std::nullopt;
  const auto values = table.values<int32_t>();
  if (values.size() != static_cast<size_t>(rank) * 2) return std::nullopt;
  const auto at = [&](int back) { return values.size() - 2 * static_cast<size_t>(back + 1); };
  for (size_t i = 0; i < values.size(); ++i) {
    const bool plane = i >= at(2) && i < at(0);
    if (values[i] < 0 || (!plane && values[i] != 0)) return std::nullopt;
  }
  return PadAmounts{values[at(2)], values[at(2) + 1], values[at(1)], values[at(1) + 1]};
}

}  // namespace skillet::npus::rockchip
