#include "npus/rockchip/compiler/assumptions.h"

#include <algorithm>
#include <array>

#include "base/is_any_of.h"
#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/moves.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

using ir::Graph;
using ir::OpId;
using ir::OpKind;
using ir::TensorId;

#define QUESTION(number, row)
#define NO_ROW(number, why)
enum class Name : uint8_t {
#define ASSUMPTION(name, what, sections, probe) name,
#include "npus/rockchip/compiler/assumptions.def"
#undef ASSUMPTION
};
constexpr std::array kAssumptions = {
#define ASSUMPTION(name, what, sections, probe) npu::Assumption{#name, what, sections, probe},
#include "npus/rockchip/compiler/assumptions.def"
#undef ASSUMPTION
};
#undef QUESTION
#undef NO_ROW

const ir::Tensor& input(const Graph& graph, OpId id, size_t i = 0) { return graph.tensor(graph.op(id).inputs[i]); }
const ir::Tensor& output(const Graph& graph, OpId id) { return graph.tensor(graph.op(id).outputs[0]); }
bool is_filter(const Graph& graph, OpId id) {
  const OpKind kind = graph.op(id).kind;
  return kind == OpKind::conv_2d || kind == OpKind::depthwise_conv_2d || kind == OpKind::fully_connected;
}
OpId producer_of(const Graph& graph, TensorId id) {
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (std::ranges::count(graph.ops[op].outputs, id) != 0) return static_cast<OpId>(op);
  }
  return -1;
}
bool is_made_by(const Graph& graph, TensorId id, OpKind kind) {
  const OpId producer = producer_of(graph, id);
  return producer >= 0 && graph.op(producer).kind == kind;
}

// ---- windows ----

// The images of moves, with their width and height in memory.
std::vector<Window> windows_of(std::span<const Move> moves) {
  std::vector<Window> out;
  for (const Move& move : moves) {
    out.push_back(window_of(move));
    out.back().in = move.from;
  }
  return out;
}
std::vector<Window> windows_of_average(const Window& w) {
  if (leaves_image(w)) {
    const auto parts = averages_of(w);
    return parts.ok() ? windows_of(*parts) : std::vector<Window>();
  }
  std::vector<Window> out{w};
  if (const auto steps = average_steps(w)) out.insert(out.end(), {steps->first, steps->second});
  return out;
}
// The windows of the convolutions that an operation becomes, except 1x1 ones with stride 1.
std::vector<Window> windows_of(const Graph& graph, OpId id) {
  const ir::Op& op = graph.op(id);
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::fully_connected: return {window_of(graph, id)};
    case OpKind::average_pool_2d:
    case OpKind::mean: return windows_of_average(window_of(graph, id));
    case OpKind::max_pool_2d:
    case OpKind::reduce_max:
    case OpKind::reduce_min: {
      const Window w = maximum_window(graph, id);
      return {border_window(w), corner_window(w)};
    }
    case OpKind::pad: return {copy_window(input(graph, id), output(graph, id), *pad_amounts(graph, op))};
    case OpKind::space_to_depth:
      return {blocks_window(plane_of(input(graph, id).shape), plane_of(output(graph, id).shape))};
    case OpKind::slice:
    case OpKind::strided_slice:
    case OpKind::concatenation:
    case OpKind::split:
    case OpKind::split_v: {
      const auto moves = moves_of(graph, op);
      return moves.ok() ? windows_of(*moves) : std::vector<Window>();
    }
    default: return {};
  }
}

template <bool (*kIs)(const Window&)>
bool any_window(const Graph& graph, OpId id) {
  return std::ranges::any_of(windows_of(graph, id), kIs);
}
bool not_square(const Window& w) {
  const bool is_pointwise = w.kernel_height * w.kernel_width == 1 && w.stride_y * w.stride_x == 1;
  return w.kernel_height != w.kernel_width || (w.in.height != w.in.width && !is_pointwise);
}
bool has_two_strides(const Window& w) { return w.stride_y != w.stride_x; }
bool is_dilated(const Window& w) { return w.dilation_y != 1 || w.dilation_x != 1; }
bool is_large(const Window& w) { return std::max(w.kernel_height, w.kernel_width) > kKernelSeen; }
constexpr auto is_not_square = any_window<not_square>;
constexpr auto strides_differ = any_window<has_two_strides>;
constexpr auto has_dilation = any_window<is_dilated>;
constexpr auto has_large_filter = any_window<is_large>;

// ---- gains and limits ----

bool has_limits(const Graph& graph, OpId id) {
  const Limits limits = limits_of(output(graph, id), activation_of(graph.op(id)));
  return limits.lower || limits.upper;
}
bool has_upper_limit(const Graph& graph, OpId id) {
  return limits_of(output(graph, id), activation_of(graph.op(id))).upper.has_value();
}
bool has_scales(const Graph& graph, OpId id) { return is_per_channel(input(graph, id, 1).quant); }
// Whether scales are so far apart that one pass may be too coarse for some channels; then several passes are added.
bool may_need_passes(const Graph& graph, OpId id) {
  constexpr float kNearEnough = 64;  // of a multiplier with 15 bits, 9 are left
  const auto [least, most] = std::ranges::minmax(input(graph, id, 1).quant.scales);
  return has_scales(graph, id) && least * kNearEnough < most;
}
bool is_even_sum(const Graph& graph, OpId id) {
  const double step = output(graph, id).quant.scale();
  const size_t main = sum_scales(graph, graph.op(id)).main;
  return sum_gains(input(graph, id, main).quant.scale() / step, input(graph, id, 1 - main).quant.scale() / step)
      .has_value();
}
bool is_in_addition(const Graph& graph, OpId id) {
  const TensorId result = graph.op(id).outputs[0];
  return std::ranges::any_of(graph.ops, [&](const ir::Op& op) {
    return op.kind == OpKind::add && std::ranges::count(op.inputs, result) == 1;
  });
}
// A superset of fusable_additions(), without looking at the rest of the graph.
bool is_fused(const Graph& graph, OpId id) {
  const ir::Op& op = graph.op(id);
  if (plane_of(output(graph, id).shape).pixels() < kSurfaceMin) return false;
  if (op.kind == OpKind::conv_2d) return is_in_addition(graph, id);
  return std::ranges::any_of(op.inputs, [&](TensorId one) { return is_made_by(graph, one, OpKind::conv_2d); });
}
// The BS stage's products also do a limit that products of these scales would miss.
bool has_multipliers(const Graph& graph, OpId id) {
  if (is_filter(graph, id) && has_scales(graph, id)) return true;
  const OpKind kind = graph.op(id).kind;
  if (kind == OpKind::add || kind == OpKind::sub) return is_even_sum(graph, id) || is_fused(graph, id);
  if (kind == OpKind::conv_2d && is_fused(graph, id)) return true;
  return has_upper_limit(graph, id);
}

// ---- places ----

bool halves_overlap(const Graph& graph, OpId id) {
  const Flat whole = flat(plane_of(output(graph, id).shape));
  return whole.pitch < whole.plane.pixels();
}
bool is_small(const Graph& graph, OpId id) {
  const Flat whole = flat(plane_of(output(graph, id).shape));
  return std::min<int64_t>(whole.pitch, whole.plane.pixels()) < kSurfaceMin;
}
bool passes_overlap(const Graph& graph, OpId id) { return may_need_passes(graph, id) && halves_overlap(graph, id); }
bool passes_are_small(const Graph& graph, OpId id) { return may_need_passes(graph, id) && is_small(graph, id); }
bool has_one_channel(const Graph& graph, OpId id) { return window_of(graph, id).in.channels == 1; }
bool has_few_channels(const Graph& graph, OpId id) {
  const int32_t channels = window_of(graph, id).in.channels;
  return channels > 1 && channels <= 4;
}
bool is_spread(const Graph& graph, OpId id) {
  const Window w = window_of(graph, id);
  return w.multiplier != 1 || w.in.channels == 1;
}
bool reads_pad(const Graph& graph, OpId id) { return is_made_by(graph, graph.op(id).inputs[0], OpKind::pad); }
bool has_border(const Graph& graph, OpId id) {
  const Window w = maximum_window(graph, id);
  return border_window(w).out.pixels() != w.in.pixels();
}
bool has_beside(const Graph& graph, OpId id) { return leaves_image(window_of(graph, id)); }
bool joins_channels(const Graph& graph, OpId id) {
  return axis_from_back(output(graph, id).shape, graph.op(id).as<ir::ConcatAttrs>().axis) == 0;
}
bool joins_others(const Graph& graph, OpId id) { return !joins_channels(graph, id); }
bool a_piece_overlaps(const Graph& graph, OpId id) {
  return joins_channels(graph, id) && std::ranges::any_of(graph.op(id).inputs, [&](TensorId piece) {
           const Flat whole = flat(plane_of(graph.tensor(piece).shape));
           return whole.pitch < whole.plane.pixels();
         });
}
bool divides_channels(const Graph& graph, OpId id) {
  const bool sized = graph.op(id).kind == OpKind::split_v;
  const int32_t axis = input(graph, id, sized ? 2 : 0).values<int32_t>()[0];
  return axis_from_back(input(graph, id, sized ? 0 : 1).shape, axis) == 0;
}
bool divides_others(const Graph& graph, OpId id) { return !divides_channels(graph, id); }
bool a_view_overlaps(const Graph& graph, OpId id) {
  return divides_channels(graph, id) && std::ranges::any_of(graph.op(id).outputs, [&](TensorId piece) {
           const Flat whole = flat(plane_of(graph.tensor(piece).shape));
           return whole.pitch < whole.plane.pixels();
         });
}
bool keeps_bytes_in_place(const Graph& graph, OpId id) {
  return keeps_channels(input(graph, id).shape, output(graph, id).shape);
}
bool moves_channels(const Graph& graph, OpId id) { return !keeps_bytes_in_place(graph, id); }
// The copy is an image with the input's rows.
bool copies_overlap(const Graph& graph, OpId id) {
  Plane plane = plane_of(input(graph, id).shape);
  plane.channels = plane_of(output(graph, id).shape).channels;
  const Flat whole = flat(plane);
  return keeps_bytes_in_place(graph, id) && whole.pitch < whole.plane.pixels();
}
// One surface becomes several, as in RESIZE.
bool has_one_surface(const Graph& graph, OpId id) {
  const auto all = interleave_of(graph, graph.op(id));
  return all && all->from.channels <= kAtom;
}
bool moves_one_surface(const Graph& graph, OpId id) { return moves_channels(graph, id) && has_one_surface(graph, id); }

// ---- elements ----

Factor factor_of(const Graph& graph, OpId id) { return product_of(graph, graph.op(id)).factor; }
bool is_by_constant(const Graph& graph, OpId id) { return factor_of(graph, id) == Factor::constant; }
bool is_of_tensors(const Graph& graph, OpId id) { return !is_by_constant(graph, id); }
bool is_by_pixel(const Graph& graph, OpId id) { return factor_of(graph, id) == Factor::pixel; }
bool product_overlaps(const Graph& graph, OpId id) {
  return factor_of(graph, id) == Factor::element && halves_overlap(graph, id);
}
bool is_small_product(const Graph& graph, OpId id) {
  if (is_by_pixel(graph, id)) return plane_of(output(graph, id).shape).pixels() < kSurfaceMin;
  return is_of_tensors(graph, id) && is_small(graph, id);
}
bool is_limited_product(const Graph& graph, OpId id) { return is_of_tensors(graph, id) && has_upper_limit(graph, id); }
bool is_limited_weighting(const Graph& graph, OpId id) {
  return is_by_constant(graph, id) && has_upper_limit(graph, id);
}
bool is_sum(const Graph& graph, OpId id) {
  const ir::Op& op = graph.op(id);
  return is_leaky_sum(input(graph, id), output(graph, id), op.as<ir::LeakyReluAttrs>().alpha);
}
bool is_table(const Graph& graph, OpId id) { return !is_sum(graph, id); }
bool leaky_overlaps(const Graph& graph, OpId id) { return is_sum(graph, id) && halves_overlap(graph, id); }
bool is_small_leaky(const Graph& graph, OpId id) { return is_sum(graph, id) && is_small(graph, id); }

struct Basis {
  Name name;
  bool (*applies)(const Graph&, OpId);  // null: always
  std::initializer_list<OpKind> kinds;
};
// Assumptions of single operations, in the order of assumptions.def. Those that apply to all are not listed.
constexpr Basis kBases[] = {
    {Name::true_width,
     is_not_square,
     {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected, OpKind::average_pool_2d, OpKind::mean,
      OpKind::max_pool_2d, OpKind::reduce_max, OpKind::reduce_min, OpKind::pad, OpKind::space_to_depth, OpKind::slice,
      OpKind::strided_slice, OpKind::concatenation, OpKind::split, OpKind::split_v}},
    {Name::strides_differ,
     strides_differ,
     {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected, OpKind::average_pool_2d, OpKind::mean,
      OpKind::max_pool_2d, OpKind::reduce_max, OpKind::reduce_min, OpKind::slice, OpKind::strided_slice}},
    {Name::dilation, has_dilation, {OpKind::conv_2d, OpKind::depthwise_conv_2d}},
    {Name::large_filters,
     has_large_filter,
     {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected, OpKind::average_pool_2d, OpKind::mean,
      OpKind::max_pool_2d, OpKind::reduce_max, OpKind::reduce_min, OpKind::pad, OpKind::space_to_depth}},
    {Name::stage_activation,
     has_limits,
     {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected, OpKind::average_pool_2d, OpKind::mean,
      OpKind::add, OpKind::sub, OpKind::mul, OpKind::relu, OpKind::relu6, OpKind::concatenation}},
    {Name::scales_per_channel,
     has_multipliers,
     {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected, OpKind::average_pool_2d, OpKind::add,
      OpKind::sub, OpKind::relu, OpKind::relu6, OpKind::concatenation}},
    {Name::scales_per_channel, is_limited_weighting, {OpKind::mul}},
    {Name::packed_rows, has_one_channel, {OpKind::conv_2d, OpKind::depthwise_conv_2d}},
    {Name::packed_pixels, has_few_channels, {OpKind::conv_2d}},
    {Name::filters_as_conv, is_spread, {OpKind::depthwise_conv_2d}},
    {Name::fully_connected_as_conv, nullptr, {OpKind::fully_connected}},
    {Name::copy_as_conv, nullptr, {OpKind::relu, OpKind::relu6, OpKind::quantize}},
    {Name::copy_as_conv, joins_channels, {OpKind::concatenation}},
    {Name::copy_as_conv, divides_channels, {OpKind::split, OpKind::split_v}},
    {Name::copy_as_conv, keeps_bytes_in_place, {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims}},
    {Name::copy_as_conv, is_sum, {OpKind::leaky_relu}},
    {Name::overlapping_halves,
     halves_overlap,
     {OpKind::relu, OpKind::relu6, OpKind::quantize, OpKind::add, OpKind::sub}},
    {Name::overlapping_halves, a_piece_overlaps, {OpKind::concatenation}},
    {Name::overlapping_halves, a_view_overlaps, {OpKind::split, OpKind::split_v}},
    {Name::overlapping_halves, copies_overlap, {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims}},
    {Name::overlapping_halves, leaky_overlaps, {OpKind::leaky_relu}},
    {Name::overlapping_halves, product_overlaps, {OpKind::mul}},
    {Name::overlapping_halves, passes_overlap, {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected}},
    {Name::pad_folded_or_copied, nullptr, {OpKind::pad}},
    {Name::pad_folded_or_copied, reads_pad, {OpKind::conv_2d, OpKind::depthwise_conv_2d}},
    {Name::pad_folded_or_copied, has_border, {OpKind::max_pool_2d, OpKind::reduce_max, OpKind::reduce_min}},
    {Name::blocks_as_conv, nullptr, {OpKind::space_to_depth}},
    {Name::constant_as_depthwise, is_by_constant, {OpKind::mul}},
    {Name::average_as_depthwise, nullptr, {OpKind::average_pool_2d, OpKind::mean}},
    {Name::same_bytes, keeps_bytes_in_place, {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims}},
    {Name::split_as_view, divides_channels, {OpKind::split, OpKind::split_v}},
    {Name::concat_in_place, joins_channels, {OpKind::concatenation}},
    {Name::moved_rectangles, joins_others, {OpKind::concatenation}},
    {Name::moved_rectangles, divides_others, {OpKind::split, OpKind::split_v}},
    {Name::moved_rectangles,
     nullptr,
     {OpKind::slice, OpKind::strided_slice, OpKind::resize_bilinear, OpKind::resize_nearest_neighbor,
      OpKind::depth_to_space}},
    {Name::moved_rectangles, has_beside, {OpKind::average_pool_2d}},
    {Name::moved_rectangles, moves_channels, {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims}},
    {Name::average_in_parts, has_beside, {OpKind::average_pool_2d}},
    {Name::repeated_by_strides, nullptr, {OpKind::resize_bilinear, OpKind::resize_nearest_neighbor}},
    {Name::repeated_by_strides, has_one_surface, {OpKind::depth_to_space}},
    {Name::repeated_by_strides, moves_one_surface, {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims}},
    {Name::channels_as_pixels, nullptr, {OpKind::depth_to_space}},
    {Name::channels_as_pixels, moves_channels, {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims}},
    {Name::add_as_diagonal_conv, nullptr, {OpKind::add, OpKind::sub}},
    {Name::add_as_diagonal_conv, is_sum, {OpKind::leaky_relu}},
    {Name::add_as_diagonal_conv,
     may_need_passes,
     {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected}},
    {Name::few_pixels, is_small, {OpKind::add, OpKind::sub}},
    {Name::few_pixels, is_small_leaky, {OpKind::leaky_relu}},
    {Name::few_pixels, is_small_product, {OpKind::mul}},
    {Name::few_pixels, passes_are_small, {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::fully_connected}},
    {Name::limit_after_two, has_upper_limit, {OpKind::add, OpKind::sub}},
    {Name::limit_after_two, is_limited_product, {OpKind::mul}},
    {Name::fused_additions, is_fused, {OpKind::conv_2d, OpKind::add}},
    {Name::leaky_as_sum, is_sum, {OpKind::leaky_relu}},
    {Name::product_of_tensors, is_of_tensors, {OpKind::mul}},
    {Name::spread_pixel, is_by_pixel, {OpKind::mul}},
    {Name::elementwise_selection,
     nullptr,
     {OpKind::maximum, OpKind::minimum, OpKind::max_pool_2d, OpKind::reduce_max, OpKind::reduce_min}},
    {Name::maximum_of_moved_images, nullptr, {OpKind::max_pool_2d, OpKind::reduce_max, OpKind::reduce_min}},
    {Name::byte_table, is_table, {OpKind::leaky_relu}},
    {Name::byte_table,
     nullptr,
     {OpKind::relu_n1_to_1, OpKind::abs, OpKind::logistic, OpKind::tanh, OpKind::hard_swish, OpKind::elu, OpKind::exp,
      OpKind::byte_table}},
};

// Whether the operation is one task, or tasks that do not depend on each other.
bool is_one_step(const Graph& graph, OpId id) {
  switch (graph.op(id).kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::fully_connected: return !may_need_passes(graph, id);
    case OpKind::average_pool_2d:
    case OpKind::mean: return has_beside(graph, id) || !average_steps(window_of(graph, id));
    case OpKind::concatenation: return joins_others(graph, id) || are_surfaces(graph, graph.op(id).inputs);
    case OpKind::resize_bilinear:
    case OpKind::resize_nearest_neighbor: {
      const auto repeat = repeat_of(graph, graph.op(id));
      return repeat && (repeat->rows == 1 || repeat->columns == 1);
    }
    case OpKind::depth_to_space: return false;
    case OpKind::leaky_relu: return is_table(graph, id);
    case OpKind::max_pool_2d:
    case OpKind::reduce_max:
    case OpKind::reduce_min: return false;
    default: return true;
  }
}

}  // namespace

std::span<const npu::Assumption> assumptions() { return kAssumptions; }

std::vector<const npu::Assumption*> assumptions_of(const ir::Graph& graph, ir::OpId op) {
  std::array<bool, kAssumptions.size()> stands_on{};
  const auto add = [&](Name name) { stands_on[static_cast<size_t>(name)] = true; };
  add(Name::rule_values);
  if (graph.ops.size() > 1 || !is_one_step(graph, op)) add(Name::joined_tasks);
  if (output(graph, op).dtype == ir::DType::int8) add(Name::signed_by_128);
  for (const Basis& basis : kBases) {
    if (is_any_of(graph.op(op).kind, basis.kinds) && (basis.applies == nullptr || basis.applies(graph, op)))
      add(basis.name);
  }
  std::vector<const npu::Assumption*> out;
  for (size_t i = 0; i < kAssumptions.size(); ++i) {
    if (stands_on[i]) out.push_back(&kAssumptions[i]);
  }
  return out;
}

}  // namespace skillet::npus::rockchip
