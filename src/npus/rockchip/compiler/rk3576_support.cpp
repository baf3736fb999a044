// What the RK3576 takes of what the RK3588 takes: convolutions, averages, maxima by the pooling unit, and what is a
// convolution or moves nothing.
#include <algorithm>
#include <cmath>

#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/moves.h"
#include "npus/rockchip/compiler/placement.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/rk3576.h"
#include "npus/rockchip/compiler/support_rules.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr int32_t kPoolMax = 16, kPoolPadMax = 7;
constexpr double kCoarsest = 160;  // steps of a channel's multiplier, at least: no output is off by more than one

Support pool(const Window& w, const Support& otherwise) {
  if (std::max({w.kernel_height, w.kernel_width, w.stride_y, w.stride_x}) > kPoolMax)
    return Support::no(Remedy::split, "a window of {}x{} with strides {} and {}; the pooling unit has at most {}",
                       w.kernel_height, w.kernel_width, w.stride_y, w.stride_x, kPoolMax);
  if (std::max({w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}) > kPoolPadMax)
    return Support::no(Remedy::form, "padding of {} rows and {} columns; the pooling unit has at most {}",
                       std::max(w.pad_top, w.pad_bottom), std::max(w.pad_left, w.pad_right), kPoolPadMax);
  return otherwise;
}

// How far sums of a channel reach from 0, of one input: bytes less zero points, and the bias.
double reach_of(const ir::Graph& graph, const ir::Op& op, size_t channel, bool depthwise) {
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  const size_t channels = filter.quant.scales.size(), count = filter.data.size() / std::max<size_t>(channels, 1);
  const bool is_signed = filter.dtype == ir::DType::int8;
  const int32_t zero = filter.quant.zero_points.empty() ? 0 : filter.quant.zero_points[channel];
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t byte = filter.data[depthwise ? i * channels + channel : channel * count + i];
    sum += std::abs((is_signed ? static_cast<int8_t>(byte) : byte) - zero);
  }
  const ir::TensorId bias = op.input(2);
  const double own =
      bias == ir::kNoTensor ? 0 : std::abs(static_cast<double>(graph.tensor(bias).values<int32_t>().at(channel)));
  return UINT8_MAX * sum + own;
}

// A multiplier of a channel counts from 1 to 2^14, the largest scale's: too coarse where the channel reaches far.
Support scales(const ir::Graph& graph, const ir::Op& op, bool depthwise) {
  constexpr double kLargest = 16384, kHalf = 0.5;
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  const std::vector<float>& all = filter.quant.scales;
  if (!is_per_channel(filter.quant)) return Support::yes();
  const double most = std::ranges::max(all);
  const double unit = double{graph.tensor(op.inputs[0]).quant.scale()} / graph.tensor(op.outputs[0]).quant.scale();
  for (size_t c = 0; c < all.size(); ++c) {
    const double multiplier = all[c] / most * kLargest;
    if (multiplier >= kCoarsest) continue;
    const double outputs = std::min<double>(UINT8_MAX, unit * all[c] * reach_of(graph, op, c, depthwise));
    if (outputs * kHalf / std::max(multiplier, kHalf) > UINT8_MAX * kHalf / kCoarsest)
      return Support::no(Remedy::range, "'{}' has scales of {:g} and {:g}; the NPU multiplies channels by 1/16384 to 1",
                         filter.name, all[c], most);
  }
  return Support::yes();
}

Support convolution(const ir::Graph& graph, ir::OpId id, const Support& otherwise) {
  const Window w = window_of(graph, id);
  const ir::Tensor& filter = graph.tensor(graph.op(id).inputs[1]);
  if (std::max(w.dilation_y, w.dilation_x) > 1)
    return Support::no(Remedy::form, "dilations of {} and {}; no known program of the chip has any", w.dilation_y,
                       w.dilation_x);
  // Weights less zero points are two signed bytes.
  const auto is_largest = [&](uint8_t byte) { return (filter.dtype == ir::DType::int8 ? byte ^ 0x80 : byte) == 255; };
  if (w.depthwise && unsigned_zero(filter) == 0 && std::ranges::any_of(filter.data, is_largest))
    return Support::no(Remedy::reconvert, "'{}' has a weight of 255 steps; the NPU's depthwise ones reach 254",
                       filter.name);
  const Support own = scales(graph, graph.op(id), w.depthwise);
  return own.ok ? otherwise : own;
}

// Both operands get weights of seven bits.
Support sum(const ir::Graph& graph, const ir::Op& op) {
  constexpr double kErrorMax = 0.5;  // steps of the output: no output is off by more than one
  const PairWeights weights = pair_weights(graph, op);
  if (weights.error <= kErrorMax) return Support::yes();
  const ir::Tensor &a = graph.tensor(op.inputs[0]), &b = graph.tensor(op.inputs[1]);
  return Support::no(Remedy::range,
                     "'{}' and '{}' have scales of {:g} and {:g}; as weights of 7 bits, {} and {}, they would make the "
                     "sum off by {:.2g} steps",
                     a.name, b.name, a.quant.scale(), b.quant.scale(), weights.first, weights.second, weights.error);
}

Support padding(const ir::Graph& graph, const ir::Op& op) {
  const Support type = rockchip::takes(graph.tensor(op.inputs[0]));
  if (!type.ok || pads_of_maxima(graph, op)) return type;
  return Support::no(Remedy::form, "the chip pads with the lowest value in front of MAX_POOL_2D, by at most {}",
                     kPoolPadMax);
}

}  // namespace

Support takes(const ir::Graph& graph, ir::OpId id, const Support& otherwise) {
  const ir::Op& op = graph.op(id);
  if (op.kind == OpKind::pad_v2) return padding(graph, op);
  if (!otherwise.ok) return otherwise;
  // Boards have run tables and sums, other than on the RK3588.
  if (is_table(op.kind)) return Support::yes();
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::fully_connected: return convolution(graph, id, otherwise);
    case OpKind::average_pool_2d:
    case OpKind::mean:
      return leaves_image(window_of(graph, id))
                 ? Support::no(Remedy::none, "an average of windows that leave the image in part")
                 : otherwise;
    case OpKind::max_pool_2d: return pool(window_of(graph, id), otherwise);
    case OpKind::concatenation:
      return axis_from_back(graph.tensor(op.outputs[0]).shape, op.as<ir::ConcatAttrs>().axis) == 0
                 ? otherwise
                 : Support::no(Remedy::none, "no known program of the chip joins rows or columns");
    case OpKind::reshape:
    case OpKind::squeeze:
    case OpKind::expand_dims:
      return keeps_channels(graph.tensor(op.inputs[0]).shape, graph.tensor(op.outputs[0]).shape)
                 ? otherwise
                 : Support::no(Remedy::form, "no known program of the chip moves channels");
    case OpKind::add:
    case OpKind::sub: return sum(graph, op);
    case OpKind::leaky_relu: return Support::yes();
    case OpKind::relu:
    case OpKind::relu6:
    case OpKind::pad:
    case OpKind::quantize: return otherwise;
    default:
      return Support::no(Remedy::none, "no known program of the chip computes {} on 8-bit tensors", ir::op_name(op));
  }
}

}  // namespace skillet::npus::rockchip::rk3576
