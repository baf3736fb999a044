#include "npus/rockchip/compiler/cost.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/leaked.h"
#include "graph/ir/sign.h"
#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

// The fits of the specification's page on timing, nets on one core at a pinned clock (sections 2.2, 4.1, 4.2), and for
// the host its section 9. None was measured by us. At a lower clock computing takes longer, and several cores gain
// more.
constexpr double kClockPerUs = 1000;          // cycles: 1 GHz, to which the fits belong
constexpr double kComputeFactor = 1.02;       // "a" of the form that adds memory to computing
constexpr double kCoreBytesPerUs = 18'100;    // "BW" of that form: one core
constexpr double kMemoryBytesPerUs = 24'000;  // usable of the memory by all cores (section 7.2)
constexpr double kTaskUs = 200;               // mainline starts each task with an interrupt; certainty: medium
constexpr double kHostBytesPerUs = 2'000;     // between layouts, with cache maintenance: 1 to 3 GB/s; not verified
constexpr double kSubmitUs = 100;             // 100 to 300 with the interrupt, which is in kTaskUs; not verified
constexpr int64_t kPixelGroup = 16;
constexpr int64_t kOutputCycles = 4;  // 32 channels of a pixel leave in so many

int64_t cycles(const Conv& conv) {
  const int64_t pixels = align_up(conv.out.pixels(), kPixelGroup);
  if (conv.depthwise) return pixels * ceil_div(conv.in.channels, kDepthwiseGroup) * conv.taps();
  const int64_t in_groups = conv.in.channels <= 4 ? 1 : ceil_div(conv.in.channels, kLaneGroup);
  return pixels * ceil_div(conv.out.channels, kKernelGroup) * std::max(conv.taps() * in_groups, kOutputCycles);
}

npu::Cost of_window(const hw::ChipRow& chip, const Window& w, bool addition) {
  static const auto& tuning = leaked<Tuning>(tuning_of({}).value());
  Conv conv = shape_of(w);
  if (addition) conv.addition.emplace();
  const Geometry g = geometry(conv, tuning);
  const auto parts = split(chip, conv, g, tuning);
  const auto tasks = static_cast<double>(parts.ok() ? parts->tasks.size() : 1);
  const auto bytes = static_cast<double>(input_bytes(conv, g) + output_bytes(conv, g) * (addition ? 2 : 1)) +
                     static_cast<double>(g.weight_bytes());
  return {tasks * kTaskUs, kComputeFactor * static_cast<double>(cycles(conv)) / kClockPerUs, bytes};
}

npu::Cost of_op(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) {
  const hw::ChipRow& row = hw::chips()[static_cast<size_t>(chip.row)];
  const ir::Op& op = graph.op(id);
  const auto tensor = [&](ir::TensorId of) -> const ir::Tensor& { return graph.tensor(of); };
  const auto copy = [&](const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads) {
    return of_window(row, copy_window(from, to, pads), false);
  };
  switch (op.kind) {
    case ir::OpKind::conv_2d:
    case ir::OpKind::depthwise_conv_2d:
    case ir::OpKind::fully_connected:
    case ir::OpKind::average_pool_2d:
    case ir::OpKind::mean: return of_window(row, window_of(graph, id), false);
    case ir::OpKind::add:
    case ir::OpKind::sub:
    case ir::OpKind::mul:
    case ir::OpKind::leaky_relu: {
      const Plane plane = plane_of(tensor(op.outputs[0]).shape);
      return of_window(row, {.in = plane, .out = plane}, true);
    }
    case ir::OpKind::concatenation: {
      npu::Cost sum;
      for (const ir::TensorId input : op.inputs) sum += copy(tensor(input), tensor(input), {});
      return sum;
    }
    case ir::OpKind::pad:
      return copy(tensor(op.inputs[0]), tensor(op.outputs[0]), pad_amounts(graph, op).value_or(PadAmounts{}));
    case ir::OpKind::relu:
    case ir::OpKind::relu6: return copy(tensor(op.inputs[0]), tensor(op.outputs[0]), {});
    case ir::OpKind::quantize:
      if (ir::only_changes_sign(tensor(op.inputs[0]), tensor(op.outputs[0]))) return {};  // the same bytes
      return copy(tensor(op.inputs[0]), tensor(op.outputs[0]), {});
    case ir::OpKind::reshape:
    case ir::OpKind::squeeze:
    case ir::OpKind::expand_dims: {
      const ir::Tensor& to = tensor(op.outputs[0]);
      return keeps_channels(tensor(op.inputs[0]).shape, to.shape) ? npu::Cost{} : copy(to, to, {});
    }
    case ir::OpKind::split:
    case ir::OpKind::split_v: return {};  // another name for the same bytes
    case ir::OpKind::max_pool_2d: {
      const Window w = maximum_window(graph, id);
      const size_t steps = steps_to(w.kernel_height).size() + steps_to(w.kernel_width).size();
      npu::Cost sum = of_window(row, corner_window(w), false);
      for (size_t i = 0; i < steps; ++i) sum += copy(tensor(op.inputs[0]), tensor(op.inputs[0]), {});
      return sum;
    }
    default: return copy(tensor(op.outputs[0]), tensor(op.outputs[0]), {});
  }
}

}  // namespace

const npu::CostModel* costs(const hw::ChipRow& chip) {
  static constexpr npu::CostModel kModel{.of_op = of_op,
                                         .core_bytes_per_us = kCoreBytesPerUs,
                                         .memory_bytes_per_us = kMemoryBytesPerUs,
                                         .host_in_bytes_per_us = kHostBytesPerUs,
                                         .host_out_bytes_per_us = kHostBytesPerUs,
                                         .submit_us = kSubmitUs};
  return chip.cores > 1 && !chip.has(hw::kOneCoreAtATime) ? &kModel : nullptr;
}

}  // namespace skillet::npus::rockchip
