// The rows of assumptions_3576.def that the program of an operation stands on.
#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/moves.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/rk3576.h"
#include "npus/rockchip/compiler/support_rules.h"

namespace skillet::npus::rockchip::rk3576 {
namespace {

using ir::OpKind;

// How a convolution is divided into tasks.
struct Division {
  bool by_rows = false, by_kernels = false, in_six_banks = false;
};

// An operation that the chip takes, and the convolutions that it may become.
struct Question {
  Question(const hw::ChipRow& its_chip, const ir::Graph& its_graph, ir::OpId its_id)
      : chip(its_chip), graph(its_graph), id(its_id), op(its_graph.op(its_id)), windows(its_windows()) {}

  const ir::Tensor& input(size_t i = 0) const { return graph.tensor(op.inputs[i]); }
  const ir::Tensor& output() const { return graph.tensor(op.outputs[0]); }
  bool is(std::initializer_list<OpKind> kinds) const { return std::ranges::count(kinds, op.kind) != 0; }
  bool has_filter() const { return is({OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected}); }
  bool is_average() const { return is({OpKind::average_pool_2d, OpKind::mean}); }
  bool is_sum() const { return is({OpKind::add, OpKind::sub}); }
  bool looks_up() const { return is_table(op.kind) || op.kind == OpKind::leaky_relu; }
  bool pools() const { return is({OpKind::max_pool_2d, OpKind::pad_v2}); }
  bool any(bool (*has)(const Window&)) const { return std::ranges::any_of(windows, has); }
  const hw::ChipRow& chip;
  const ir::Graph& graph;
  const ir::OpId id;
  const ir::Op& op;
  const std::vector<Window> windows;
  const Division division = its_division();  // by any of the windows

 private:
  std::vector<Window> its_windows() const;
  Division its_division() const;
};

// The window of an operation that treats all bytes alike.
Window flat_window(const ir::Tensor& tensor) {
  const Plane plane = plane_of(tensor.shape);
  const Plane all = halves(in_fours(plane.pixels()) * ceil_div(plane.channels, kAtom)).plane;
  return {.in = all, .out = all};
}
Window pair_window(const ir::Tensor& tensor, const Tuning& tuning) {
  Window w{.in = pair_plane(plane_of(tensor.shape), tuning).plane};
  w.out = w.in;
  w.in.channels *= 2;
  return w;
}

std::vector<Window> Question::its_windows() const {
  if (has_filter()) return {window_of(graph, id)};
  if (pools()) return {};
  if (is_sum()) return {pair_window(input(), proven(chip)), flat_window(input())};
  if (op.kind == OpKind::pad) return {copy_window(input(), output(), *pad_amounts(graph, op))};
  std::vector<Window> out;
  if (is_average()) {
    out.push_back(window_of(graph, id));
    if (const auto steps = average_steps(out[0])) out.insert(out.end(), {steps->first, steps->second});
    return out;
  }
  if (op.kind != OpKind::concatenation) return {flat_window(input())};
  for (const ir::TensorId piece : op.inputs) out.push_back(flat_window(graph.tensor(piece)));
  if (are_surfaces(graph, op.inputs)) return out;
  const Joined joined = joined_of(graph, op);
  out.push_back({.in = joined.from(), .out = joined.to});
  return out;
}

// Large windows are decided by their sizes: dividing them takes long and gives the same result.
Division Question::its_division() const {
  constexpr int64_t kBankUnits = 1024, kSeen = 5, kMost = 6;
  Division out;
  for (const Window& w : windows) {
    const Conv conv = shape_of(w);
    const Geometry g = rk3576::geometry(conv, proven(chip));
    const int64_t units = int64_t{g.row_entries} * w.in.height;
    const bool is_large = units > 2 * kMost * kBankUnits;
    out.by_rows |= is_large, out.in_six_banks |= is_large;
    if (is_large && !has_filter()) continue;
    const auto parts = rk3576::split(chip, conv, g, proven(chip));
    for (const Task& task : parts.ok() ? parts->tasks : std::vector<Task>()) {
      out.by_rows |= task.out_rows < conv.out.height;
      out.by_kernels |= task.first_lane > 0;
      out.in_six_banks |= task.data_banks > kSeen;
    }
  }
  return out;
}

// One function for each row of assumptions_3576.def.
namespace stands_on {

bool shifted_products(const Question& q) { return !q.pools() && !q.looks_up(); }

// A sum copies operands that are elsewhere; a table needs a task that loads it.
bool joined_tasks(const Question& q) {
  if (q.graph.ops.size() > 1 || q.is_sum()) return true;
  if (q.is_average()) return q.windows.size() > 1;
  return q.op.kind == OpKind::concatenation;
}

bool whole_groups(const Question& q) {
  return q.any([](const Window& w) { return w.in.channels % kGroup != 0 || w.out.channels % kGroup != 0; });
}

bool unsigned_less_128(const Question& q) { return q.output().dtype == ir::DType::uint8; }

bool limit_of_products(const Question& q) {
  return !q.pools() && limits_of(q.output(), activation_of(q.op)).upper.has_value();
}

bool oblong_filters(const Question& q) {
  return q.any([](const Window& w) { return w.kernel_height != w.kernel_width; });
}

bool strides_differ(const Question& q) {
  return q.any([](const Window& w) { return w.stride_y != w.stride_x; });
}

bool large_filters(const Question& q) {
  return q.any([](const Window& w) { return std::max(w.kernel_height, w.kernel_width) > kKernelSeen; });
}

bool wide_padding(const Question& q) {
  return q.op.kind == OpKind::pad || (q.has_filter() && std::ranges::any_of(q.graph.ops, [&](const ir::Op& one) {
                                        return one.kind == OpKind::pad && one.outputs[0] == q.op.inputs[0];
                                      }));
}

bool depthwise_pairs(const Question& q) {
  if (q.op.kind != OpKind::depthwise_conv_2d) return false;
  const ir::Tensor& filter = q.input(1);
  const int32_t none = filter.dtype == ir::DType::uint8 ? kZeroPoint : 0;
  return std::ranges::any_of(filter.quant.zero_points, [&](int32_t zero) { return zero != none; });
}

bool windows_of_rows(const Question& q) { return q.division.by_rows; }

bool six_data_banks(const Question& q) { return q.division.in_six_banks; }

bool kernels_in_parts(const Question& q) {
  if (q.division.by_kernels) return true;
  return q.has_filter() && is_per_channel(q.input(1).quant) && q.windows[0].out.channels > kGroup;
}

bool filters_as_conv(const Question& q) {
  const Window& w = q.windows.empty() ? Window{} : q.windows[0];
  return q.op.kind == OpKind::depthwise_conv_2d && (w.multiplier != 1 || w.in.channels == 1);
}

bool fully_connected_as_conv(const Question& q) { return q.op.kind == OpKind::fully_connected; }

bool copy_as_conv(const Question& q) {
  return !q.has_filter() && !q.is_average() && !q.looks_up() && !q.pools() && q.op.kind != OpKind::pad;
}

bool average_as_depthwise(const Question& q) { return q.is_average(); }

bool concat_in_place(const Question& q) { return q.op.kind == OpKind::concatenation; }

bool add_as_pair(const Question& q) { return q.is_sum(); }

bool table_of_sums(const Question& q) { return q.looks_up(); }

bool pooling_completes(const Question& q) { return q.pools(); }

}  // namespace stands_on

#define QUESTION(number, row)
#define NO_ROW(number, why)
constexpr std::array kAssumptions = {
#define ASSUMPTION(name, what, sections, probe) npu::Assumption{#name, what, sections, probe},
#include "npus/rockchip/compiler/assumptions_3576.def"
#undef ASSUMPTION
};
using Applies = bool (*)(const Question&);
constexpr std::array kApplies = {
#define ASSUMPTION(name, what, sections, probe) Applies{stands_on::name},
#include "npus/rockchip/compiler/assumptions_3576.def"
#undef ASSUMPTION
};
#undef QUESTION
#undef NO_ROW

}  // namespace

std::span<const npu::Assumption> assumptions() { return kAssumptions; }

std::vector<const npu::Assumption*> assumptions_of(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op) {
  std::vector<const npu::Assumption*> out;
  const Question question(chip, graph, op);
  for (size_t i = 0; i < kAssumptions.size(); ++i) {
    if (kApplies[i](question)) out.push_back(&kAssumptions[i]);
  }
  return out;
}

}  // namespace skillet::npus::rockchip::rk3576
