// The operations that the RK3576 takes, of those that the RK3588 takes: convolutions, averages, maxima by the pooling
// unit, and operations that become convolutions or move nothing.
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

constexpr int32_t kPoolMax = 16, kPoolPadMax = 7, kPoolSizeMax = 8192;
constexpr double kCoarsest = 160;  // smallest multiplier of a channel, in steps: no output is off by more than one

Support pool(const Window& w, const Support& otherwise) {
  if (std::max({w.kernel_height, w.kernel_width, w.stride_y, w.stride_x}) > kPoolMax)
    return Support::no(Remedy::split, "a window of {}x{} with strides {} and {}; the pooling unit has at most {}",
                       w.kernel_height, w.kernel_width, w.stride_y, w.stride_x, kPoolMax);
  if (std::max({w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}) > kPoolPadMax)
    return Support::no(Remedy::form, "padding of {} rows and {} columns; the pooling unit has at most {}",
                       std::max(w.pad_top, w.pad_bottom), std::max(w.pad_left, w.pad_right), kPoolPadMax);
  if (std::max({w.in.height, w.in.width, w.in.channels}) > kPoolSizeMax)
    return Support::no(Remedy::split, "{} rows, {} columns and {} channels; the pooling unit counts to {}", w.in.height,
                       w.in.width, w.in.channels, kPoolSizeMax);
  return otherwise;
}

// Half the range of a channel's outputs, as limited by the byte.
double half_range(const ir::Graph& graph, const ir::Op& op, size_t channel, bool depthwise) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  const size_t channels = filter.quant.scales.size(), count = filter.data.size() / std::max<size_t>(channels, 1);
  const bool is_signed = filter.dtype == ir::DType::int8;
  const int32_t zero = filter.quant.zero_points.empty() ? 0 : filter.quant.zero_points[channel];
  double above = 0, below = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t byte = filter.data[depthwise ? i * channels + channel : channel * count + i];
    const int32_t weight = (is_signed ? static_cast<int8_t>(byte) : byte) - zero;
    (weight > 0 ? above : below) += weight;
  }
  const ir::TensorId bias = op.input(2);
  const double own = bias == ir::kNoTensor ? 0 : graph.tensor(bias).values<int32_t>().at(channel);
  const double gain = double{from.quant.scale()} * filter.quant.scales[channel] / to.quant.scale();
  const double lowest = unsigned_zero(from), highest = UINT8_MAX - lowest, least = unsigned_zero(to);
  const auto output = [&](double sum) { return std::clamp(gain * sum, -least, UINT8_MAX - least); };
  return (output(own + highest * above - lowest * below) - output(own - lowest * above + highest * below)) / 2;
}

// Expected part of the results that are off by one, with a program for each group of channels.
double otherwise(const ir::Graph& graph, const ir::Op& op, bool depthwise) {
  constexpr double kTypical = 40, kError = 0.25, kLargest = 24000, kSmall = 2000;  // multipliers
  const std::vector<float>& all = graph.tensor(op.inputs[1]).quant.scales;
  const size_t group = depthwise ? kDepthwiseGroup : kKernelGroup;
  double sum = 0;
  for (size_t first = 0; first < all.size(); first += group) {
    const auto scales = std::span(all).subspan(first, std::min(group, all.size() - first));
    const double most = std::ranges::max(scales);
    for (size_t c = 0; c < scales.size(); ++c) {
      const double multiplier = scales[c] / most * kLargest;
      if (multiplier < kSmall)
        sum += std::min(1.0, std::min(kTypical, half_range(graph, op, first + c, depthwise)) * kError / multiplier);
    }
  }
  return sum / static_cast<double>(all.size());
}

// Multipliers range from 1 to 2^14, that of the largest scale: too coarse for small scales of channels with wide
// ranges.
Support scales(const ir::Graph& graph, const ir::Op& op, bool depthwise) {
  constexpr double kLargest = 16384, kHalf = 0.5;
  constexpr double kOtherwiseMax = 0.01;
  constexpr double kOffMax = UINT8_MAX * kHalf / kCoarsest;  // steps of the output
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  const std::vector<float>& all = filter.quant.scales;
  if (!is_per_channel(filter.quant)) return Support::yes();
  const double most = std::ranges::max(all);
  for (size_t c = 0; c < all.size(); ++c) {
    const double multiplier = all[c] / most * kLargest;
    if (multiplier >= kCoarsest) continue;
    const double off = std::max(kHalf / multiplier, 1 / multiplier - 1);  // the multiplier is 1 or more
    if (off * half_range(graph, op, c, depthwise) > kOffMax)
      return Support::no(Remedy::range, "'{}' has scales of {:g} and {:g}; the NPU multiplies channels by 1/16384 to 1",
                         filter.name, all[c], most);
  }
  const double part = otherwise(graph, op, depthwise);
  if (part <= kOtherwiseMax) return Support::yes();
  return Support::no(Remedy::range,
                     "'{}' has scales of {:g} to {:g} in neighbouring channels, which share a shift: {:.2g} % of the "
                     "results would be off by 1",
                     filter.name, std::ranges::min(all), most, part * 100);
}

Support convolution(const ir::Graph& graph, ir::OpId id, const Support& otherwise) {
  const Window w = window_of(graph, id);
  const ir::Tensor& filter = graph.tensor(graph.op(id).inputs[1]);
  if (std::max(w.dilation_y, w.dilation_x) > 1)
    return Support::no(Remedy::form, "dilations of {} and {}; no known program of the chip has any", w.dilation_y,
                       w.dilation_x);
  // The vendor's programs have such zero points. TensorFlow Lite has no kernel for them, so no result can be compared.
  if (!ir::all_equal(filter.quant.zero_points))
    return Support::no(Remedy::reconvert, "'{}' has different zero points; TensorFlow Lite's kernels take one",
                       filter.name);
  // A weight minus its zero point is stored as two signed bytes.
  const auto is_largest = [&](uint8_t byte) { return (filter.dtype == ir::DType::int8 ? byte ^ 0x80 : byte) == 255; };
  if (w.depthwise && unsigned_zero(filter) == 0 && std::ranges::any_of(filter.data, is_largest))
    return Support::no(Remedy::reconvert, "'{}' has a weight of 255 steps; the NPU's depthwise weights reach 254",
                       filter.name);
  const Support own = scales(graph, graph.op(id), w.depthwise);
  return own.ok ? otherwise : own;
}

// Both operands get weights of eight bits.
Support sum(const ir::Graph& graph, const ir::Op& op) {
  constexpr double kErrorMax = 0.5;  // steps of the output: no output is off by more than one
  const PairWeights weights = pair_weights(graph, op);
  if (weights.error <= kErrorMax) return Support::yes();
  const ir::Tensor &a = graph.tensor(op.inputs[0]), &b = graph.tensor(op.inputs[1]);
  return Support::no(Remedy::range,
                     "'{}' and '{}' have scales of {:g} and {:g}; as 8-bit weights, {} and {}, they would put the sum "
                     "off by {:.2g} steps",
                     a.name, b.name, a.quant.scale(), b.quant.scale(), weights.first, weights.second, weights.error);
}

Support padding(const ir::Graph& graph, const ir::Op& op) {
  const Support type = rockchip::takes(graph.tensor(op.inputs[0]));
  if (!type.ok || pads_of_maxima(graph, op)) return type;
  return Support::no(Remedy::form, "the chip pads with the lowest value before MAX_POOL_2D, by at most {}",
                     kPoolPadMax);
}

}  // namespace

Support takes(const ir::Graph& graph, ir::OpId id, const Support& otherwise) {
  const ir::Op& op = graph.op(id);
  if (op.kind == OpKind::pad_v2) return padding(graph, op);
  if (!otherwise.ok) return otherwise;
  // Boards have run tables and sums, unlike on the RK3588.
  if (is_table(op.kind)) return Support::yes();
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::fully_connected: return convolution(graph, id, otherwise);
    case OpKind::average_pool_2d:
    case OpKind::mean:
      return leaves_image(window_of(graph, id))
                 ? Support::no(Remedy::none, "an average over windows that are partly outside the image")
                 : otherwise;
    case OpKind::max_pool_2d: return pool(window_of(graph, id), otherwise);
    case OpKind::concatenation:
      return axis_from_back(graph.tensor(op.outputs[0]).shape, op.as<ir::ConcatAttrs>().axis) == 0
                 ? otherwise
                 : Support::no(Remedy::none, "no known program of the chip concatenates rows or columns");
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
