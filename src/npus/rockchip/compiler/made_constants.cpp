// Estimates the size of weights as weights.cpp packs them, from shapes alone.
#include <algorithm>
#include <cmath>

#include "base/int_math.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/support.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

using ir::OpKind;

uint64_t dense_bytes(int64_t taps, int64_t in, int64_t out) {
  return static_cast<uint64_t>(taps * align_up(in, int64_t{kAtom}) * align_up(out, int64_t{2}));
}

// Passes of make_passes(): one more for each 2^kFactorLog2 between the smallest and the largest scale.
uint64_t passes_of(const ir::Quant& quant) {
  constexpr double kFactorLog2 = 6;  // of the gain, within which it is fine enough for all channels of a pass
  if (!is_per_channel(quant)) return 1;
  const auto [least, most] = std::ranges::minmax(quant.scales);
  if (!(least > 0)) return 1;
  return 1 + static_cast<uint64_t>(std::log2(double{most} / least) / kFactorLog2);
}

npu::MadeConstants of_filter(const ir::Graph& graph, ir::OpId id) {
  const ir::Tensor& filter = graph.tensor(graph.op(id).inputs[1]);
  const Window w = window_of(graph, id);
  const int64_t taps = int64_t{w.kernel_height} * w.kernel_width;
  const bool wide = !w.depthwise || w.multiplier != 1 || w.in.channels == 1;
  const uint64_t bytes = wide ? dense_bytes(taps, w.in.channels, w.out.channels)
                              : static_cast<uint64_t>(taps * align_up(w.in.channels, kDepthwiseGroup));
  npu::MadeConstants out{bytes * passes_of(filter.quant), ""};
  if (!is_per_channel(filter.quant))
    out.key = fmt::format("{} {} {} {}", fmt::ptr(filter.data.data()), ir::op_name(graph.op(id)), w.in.channels,
                          w.out.channels);
  return out;
}

}  // namespace

npu::MadeConstants made_constants(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::fully_connected: return of_filter(graph, id);
    case OpKind::space_to_depth: {
      const Plane out = plane_of(graph.tensor(op.outputs[0]).shape);
      return {dense_bytes(1, out.channels, out.channels), fmt::format("blocks {}", out.channels)};
    }
    case OpKind::depth_to_space:
    case OpKind::reshape: {
      const auto all = interleave_of(graph, op);
      if (!all || keeps_channels(graph.tensor(op.inputs[0]).shape, graph.tensor(op.outputs[0]).shape)) break;
      return {static_cast<uint64_t>(weights_of(*all)),
              fmt::format("pixels {} {}x{}", all->from.channels, all->rows, all->columns)};
    }
    case OpKind::concatenation: {
      if (are_surfaces(graph, op.inputs)) break;
      return {static_cast<uint64_t>(joined_of(graph, op).weights()), ""};
    }
    case OpKind::average_pool_2d:
    case OpKind::mean: {
      const Window w = window_of(graph, id);
      const int64_t taps = int64_t{w.kernel_height} * w.kernel_width;
      return {static_cast<uint64_t>(taps * align_up(w.in.channels, kDepthwiseGroup)),
              fmt::format("ones {}x{} {}", w.kernel_height, w.kernel_width, w.in.channels)};
    }
    default: break;
  }
  return {static_cast<uint64_t>(align_up(plane_of(graph.tensor(op.outputs[0]).shape).channels, kAtom)), ""};
}

}  // namespace skillet::npus::rockchip
