#include "npus/rockchip/compiler/cost.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/leaked.h"
#include "graph/ir/sign.h"
#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/fusion.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/tile.h"
#include "npus/rockchip/hw/timing.h"

namespace skillet::npus::rockchip {
namespace {

namespace timing = ::skillet::rockchip::timing;

// The parameters of a chip, or the values measured instead of them.
struct Known {
  timing::Rates rates;
  double start_us = 0;  // of a task
  double memory_bytes_per_us = 0;
};

// The work of a convolution's task in an open program, as the timing model gets it from the task's registers.
timing::Work work_of(const Conv& conv, const Geometry& g, const Task& task, const timing::Lanes& lanes,
                     double operands) {
  const int64_t in_lanes = conv.depthwise ? read_lanes(g, task.first_lane, task.lanes) : g.in_lanes;
  const int64_t kernels = conv.depthwise ? 1 : std::min(task.lanes, g.kernels - task.first_lane);
  const int64_t true_lanes = std::min(task.lanes, conv.out.channels - task.first_lane);
  const int64_t pixels = int64_t{task.out_rows} * conv.out.width;
  const timing::Window window{.pixels = pixels,
                              .channels = conv.depthwise ? task.lanes : in_lanes,
                              .kernels = kernels,
                              .rows = conv.kernel_height,
                              .columns = conv.kernel_width,
                              .depthwise = conv.depthwise,
                              .packed = conv.packed};
  const auto features =
      static_cast<double>(int64_t{conv.in.width} * task.rows * (conv.packed ? conv.in.channels : in_lanes));
  const auto weights = static_cast<double>(task.reuse_weights ? 0 : conv.taps() * in_lanes * kernels);
  const auto second = static_cast<double>(conv.addition ? pixels * task.lanes : 0);
  return {.conv_cycles = static_cast<double>(timing::conv_cycles(lanes, window)),
          .read_bytes = features + weights + second + operands * static_cast<double>(task.lanes),
          .written_bytes = static_cast<double>(pixels * true_lanes),
          .loaded_bytes = features};
}

class Pricing {
 public:
  Pricing(const hw::ChipRow& chip, const Known& known, const ir::Graph& graph, const Tuning& tuning, size_t cores)
      : chip_(chip), graph_(graph), tuning_(tuning), rates_(known.rates), start_us_(known.start_us) {
    const double share = known.memory_bytes_per_us / 1e3 / static_cast<double>(std::max<size_t>(cores, 1));
    rates_.dram_gbps = std::min(rates_.dram_gbps, share);
    if (tuning.fused_additions && tuning.exact_additions) fused_ = fusable_additions(graph);
  }

  std::vector<npu::Cost> run() const {
    std::vector<npu::Cost> out;
    for (size_t i = 0; i < graph_.ops.size(); ++i) out.push_back(of_op(static_cast<ir::OpId>(i)));
    return out;
  }

 private:
  const ir::Tensor& tensor(ir::TensorId id) const { return graph_.tensor(id); }
  bool is_fused(ir::OpId id) const { return !fused_.empty() && fused_[static_cast<size_t>(id)] >= 0; }

  npu::Cost task(const timing::Work& work) const { return {start_us_, timing::task_us(rates_, work)}; }

  npu::Cost of(Conv conv, double operands = 4) const {
    const Geometry g = geometry(conv, tuning_);
    const auto parts = split(chip_, conv, g, tuning_);
    npu::Cost sum;
    if (!parts.ok()) return sum;  // such an operation is refused
    for (const Task& one : parts->tasks) sum += task(work_of(conv, g, one, rates_.lanes, operands));
    return sum;
  }
  npu::Cost copy(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads) const {
    return of(pads.none() ? flat_diagonal(plane_of(to.shape), 1, tuning_) : shape_of(copy_window(from, to, pads)));
  }
  // Element-wise sum, in the pass of a convolution over halves of the tensor.
  npu::Cost sum(const ir::Tensor& of_tensor) const {
    Conv conv = flat_diagonal(plane_of(of_tensor.shape), 1, tuning_);
    conv.addition.emplace();
    return of(std::move(conv));
  }
  npu::Cost atoms(int64_t count, double operands, bool table) const {
    const auto bytes = static_cast<double>(count * kAtom);
    return task({.table_elements = table ? bytes : 0,
                 .read_bytes = operands * bytes,
                 .written_bytes = bytes,
                 .second_bytes = (operands - 1) * bytes});
  }
  int64_t atoms_of(const ir::Tensor& one) const {
    const Plane plane = plane_of(one.shape);
    return plane.pixels() * ceil_div(plane.channels, kAtom);
  }

  npu::Cost convolution(ir::OpId id) const {
    const ir::Op& op = graph_.op(id);
    Conv conv = shape_of(window_of(graph_, id));
    const bool image = std::ranges::count(graph_.inputs, op.inputs[0]) != 0;
    conv.packed = op.kind == ir::OpKind::conv_2d && image && tuning_.packed_rows &&
                  conv.in.channels <= (tuning_.packed_pixels ? 4 : 1);
    if (is_fused(id)) conv.addition.emplace();
    return of(std::move(conv), is_per_channel(tensor(op.inputs[1]).quant) ? 8 : 4);
  }

  // Each step takes the larger byte of two copies of the plane, one of which is shifted by some pixels.
  npu::Cost maximum(ir::OpId id) const {
    const Window w = maximum_window(graph_, id);
    const Plane plane = corner_window(w).in;
    npu::Cost sum = of(shape_of(corner_window(w)));
    if (plane.pixels() != w.in.pixels()) sum += of(shape_of(border_window(w)));
    int64_t left = plane.pixels() * ceil_div(plane.channels, kAtom);
    for (const int32_t step : steps_to(w.kernel_width)) sum += atoms(left -= step, 2, false);
    for (const int32_t step : steps_to(w.kernel_height)) sum += atoms(left -= int64_t{step} * plane.width, 2, false);
    return sum;
  }

  npu::Cost of_op(ir::OpId id) const {
    const ir::Op& op = graph_.op(id);
    const ir::Tensor& to = tensor(op.outputs[0]);
    switch (op.kind) {
      case ir::OpKind::conv_2d:
      case ir::OpKind::depthwise_conv_2d:
      case ir::OpKind::fully_connected: return convolution(id);
      case ir::OpKind::average_pool_2d:
      case ir::OpKind::mean: return of(shape_of(window_of(graph_, id)));
      case ir::OpKind::add:
      case ir::OpKind::sub:
      case ir::OpKind::mul: return is_fused(id) ? npu::Cost{} : sum(to);
      case ir::OpKind::leaky_relu: return sum(to);
      case ir::OpKind::logistic:
      case ir::OpKind::tanh:
      case ir::OpKind::hard_swish:
      case ir::OpKind::elu:
      case ir::OpKind::exp:
      case ir::OpKind::byte_table: return atoms(atoms_of(to), 1, true);
      case ir::OpKind::maximum:
      case ir::OpKind::minimum: return atoms(atoms_of(to), 2, false);
      case ir::OpKind::concatenation: {
        npu::Cost sum;
        for (const ir::TensorId input : op.inputs) sum += copy(tensor(input), tensor(input), {});
        return sum;
      }
      case ir::OpKind::pad: return copy(tensor(op.inputs[0]), to, pad_amounts(graph_, op).value_or(PadAmounts{}));
      case ir::OpKind::relu:
      case ir::OpKind::relu6: return copy(tensor(op.inputs[0]), to, {});
      case ir::OpKind::quantize:
        if (ir::only_changes_sign(tensor(op.inputs[0]), to)) return {};  // the same bytes
        return copy(tensor(op.inputs[0]), to, {});
      case ir::OpKind::reshape:
      case ir::OpKind::squeeze:
      case ir::OpKind::expand_dims:
        return keeps_channels(tensor(op.inputs[0]).shape, to.shape) ? npu::Cost{} : copy(to, to, {});
      case ir::OpKind::split:
      case ir::OpKind::split_v: return {};  // another name for the same bytes
      case ir::OpKind::max_pool_2d: return maximum(id);
      default: return copy(to, to, {});
    }
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  const Tuning& tuning_;
  timing::Rates rates_;
  double start_us_ = 0;
  std::vector<ir::OpId> fused_;
};

std::vector<npu::Cost> of_ops(const Known& known, const npu::Chip& chip, const ir::Graph& graph,
                              const npu::CompileOptions& options, size_t cores) {
  const auto& proven = leaked([] { return tuning_of({}).value(); });
  const hw::ChipRow& row = hw::chips()[static_cast<size_t>(chip.row)];
  const auto tuning = tuning_for(row, options);
  return Pricing(row, known, graph, tuning.ok() ? *tuning : proven, cores).run();
}

}  // namespace

std::optional<npu::CostModel> costs(const hw::ChipRow& chip, const npu::Measured& measured) {
  const auto get = [&](std::string_view name) {
    const auto at = measured.find(name);
    return at != measured.end() ? at->second : timing::parameter(chip.name, "open", name);
  };
  const double memory_gbps = get("memory_gbps");
  if (memory_gbps <= 0 || chip.cores < 2 || chip.has(hw::kOneCoreAtATime)) return std::nullopt;
  const Known known{timing::rates_by(get), get("task_us") + get("interrupt_us"), memory_gbps * 1e3};
  // The host converts layouts and maintains the cache for the same bytes.
  const double bytes_per_us = 1e3 / (1 / get("layout_gbps") + 1 / get("cache_gbps"));
  return npu::CostModel{
      .of_ops = [known](const npu::Chip& of, const ir::Graph& graph, const npu::CompileOptions& options,
                        size_t cores) { return of_ops(known, of, graph, options, cores); },
      .memory_bytes_per_us = known.memory_bytes_per_us,
      .host_in_bytes_per_us = bytes_per_us,
      .host_out_bytes_per_us = bytes_per_us,
      // One job, and a buffer on each side.
      .submit_us = get("submit_us") + get("iommu_us") + 2 * get("cache_us")};
}

}  // namespace skillet::npus::rockchip
