#include "drivers/rockchip/assumptions.h"

#include <array>

#include "drivers/rockchip/elementwise.h"
#include "drivers/rockchip/interleave.h"
#include "drivers/rockchip/moves.h"
#include "drivers/rockchip/window.h"

namespace skillet::drivers::rockchip {
namespace {

using ir::Graph;
using ir::OpId;
using ir::OpKind;

enum class Name : uint8_t {
#define ASSUMPTION(name, what, sections) name,
#include "drivers/rockchip/assumptions.def"
#undef ASSUMPTION
};
constexpr std::array kAssumptions = {
#define ASSUMPTION(name, what, sections) driver::Assumption{#name, what, sections},
#include "drivers/rockchip/assumptions.def"
#undef ASSUMPTION
};

const ir::Tensor& output(const Graph& graph, OpId id) { return graph.tensor(graph.op(id).outputs[0]); }

bool is_signed(const Graph& graph, OpId id) { return output(graph, id).dtype == ir::DType::int8; }
bool is_not_square(const Graph& graph, OpId id) {
  const Window w = window_of(graph, id);
  const bool is_pointwise = w.kernel_height * w.kernel_width == 1 && w.stride_y * w.stride_x == 1;
  return w.kernel_height != w.kernel_width || (w.in.height != w.in.width && !is_pointwise);
}
bool is_dilated(const Graph& graph, OpId id) {
  const Window w = window_of(graph, id);
  return w.dilation_y != 1 || w.dilation_x != 1;
}
bool has_scales(const Graph& graph, OpId id) { return is_per_channel(graph.tensor(graph.op(id).inputs[1]).quant); }
bool has_limits(const Graph& graph, OpId id) {
  const Limits limits = limits_of(output(graph, id), activation_of(graph.op(id)));
  return limits.lower || limits.upper;
}
bool has_one_channel(const Graph& graph, OpId id) { return window_of(graph, id).in.channels == 1; }
bool is_spread(const Graph& graph, OpId id) {
  const Window w = window_of(graph, id);
  return w.multiplier != 1 || w.in.channels == 1;
}
bool has_beside(const Graph& graph, OpId id) { return leaves_image(window_of(graph, id)); }
bool joins_channels(const Graph& graph, OpId id) {
  return axis_from_back(output(graph, id).shape, graph.op(id).as<ir::ConcatAttrs>().axis) == 0;
}
bool joins_others(const Graph& graph, OpId id) { return !joins_channels(graph, id); }
bool divides_channels(const Graph& graph, OpId id) {
  const ir::Op& op = graph.op(id);
  const bool sized = op.kind == OpKind::split_v;
  const ir::Tensor& axis = graph.tensor(op.inputs[sized ? 2 : 0]);
  return axis_from_back(graph.tensor(op.inputs[sized ? 0 : 1]).shape, axis.values<int32_t>()[0]) == 0;
}
bool divides_others(const Graph& graph, OpId id) { return !divides_channels(graph, id); }
bool keeps_bytes_in_place(const Graph& graph, OpId id) {
  return keeps_channels(graph.tensor(graph.op(id).inputs[0]).shape, output(graph, id).shape);
}
bool moves_channels(const Graph& graph, OpId id) { return !keeps_bytes_in_place(graph, id); }
bool is_by_constant(const Graph& graph, OpId id) { return product_of(graph, graph.op(id)).factor == Factor::constant; }
bool is_of_tensors(const Graph& graph, OpId id) { return !is_by_constant(graph, id); }
bool is_sum(const Graph& graph, OpId id) {
  const ir::Op& op = graph.op(id);
  return is_leaky_sum(graph.tensor(op.inputs[0]), output(graph, id), op.as<ir::LeakyReluAttrs>().alpha);
}
bool is_table(const Graph& graph, OpId id) { return !is_sum(graph, id); }

struct Basis {
  OpKind kind;
  Name name;
  bool (*applies)(const Graph&, OpId) = nullptr;  // null: always
};
// Beside what holds for all.
constexpr Basis kBases[] = {
    {OpKind::conv_2d, Name::true_width, is_not_square},
    {OpKind::conv_2d, Name::dilation, is_dilated},
    {OpKind::conv_2d, Name::scales_per_channel, has_scales},
    {OpKind::conv_2d, Name::stage_activation, has_limits},
    {OpKind::conv_2d, Name::packed_rows, has_one_channel},
    {OpKind::depthwise_conv_2d, Name::true_width, is_not_square},
    {OpKind::depthwise_conv_2d, Name::dilation, is_dilated},
    {OpKind::depthwise_conv_2d, Name::scales_per_channel, has_scales},
    {OpKind::depthwise_conv_2d, Name::stage_activation, has_limits},
    {OpKind::depthwise_conv_2d, Name::filters_as_conv, is_spread},
    {OpKind::fully_connected, Name::fully_connected_as_conv},
    {OpKind::fully_connected, Name::true_width, is_not_square},
    {OpKind::fully_connected, Name::scales_per_channel, has_scales},
    {OpKind::fully_connected, Name::stage_activation, has_limits},
    {OpKind::add, Name::add_as_diagonal_conv},
    {OpKind::add, Name::stage_activation, has_limits},
    {OpKind::sub, Name::add_as_diagonal_conv},
    {OpKind::sub, Name::stage_activation, has_limits},
    {OpKind::average_pool_2d, Name::average_as_depthwise},
    {OpKind::average_pool_2d, Name::average_in_parts, has_beside},
    {OpKind::average_pool_2d, Name::stage_activation, has_limits},
    {OpKind::mean, Name::average_as_depthwise},
    {OpKind::max_pool_2d, Name::maximum_of_moved_images},
    {OpKind::reduce_max, Name::maximum_of_moved_images},
    {OpKind::reduce_min, Name::maximum_of_moved_images},
    {OpKind::maximum, Name::elementwise_selection},
    {OpKind::minimum, Name::elementwise_selection},
    {OpKind::relu, Name::copy_as_conv},
    {OpKind::relu, Name::stage_activation, has_limits},
    {OpKind::relu6, Name::copy_as_conv},
    {OpKind::relu6, Name::stage_activation, has_limits},
    {OpKind::quantize, Name::copy_as_conv},
    {OpKind::pad, Name::pad_folded_or_copied},
    {OpKind::concatenation, Name::concat_in_place, joins_channels},
    {OpKind::concatenation, Name::moved_rectangles, joins_others},
    {OpKind::concatenation, Name::stage_activation, has_limits},
    {OpKind::split, Name::split_as_view, divides_channels},
    {OpKind::split, Name::moved_rectangles, divides_others},
    {OpKind::split_v, Name::split_as_view, divides_channels},
    {OpKind::split_v, Name::moved_rectangles, divides_others},
    {OpKind::slice, Name::moved_rectangles},
    {OpKind::strided_slice, Name::moved_rectangles},
    {OpKind::reshape, Name::same_bytes, keeps_bytes_in_place},
    {OpKind::reshape, Name::channels_as_pixels, moves_channels},
    {OpKind::squeeze, Name::same_bytes, keeps_bytes_in_place},
    {OpKind::squeeze, Name::channels_as_pixels, moves_channels},
    {OpKind::expand_dims, Name::same_bytes, keeps_bytes_in_place},
    {OpKind::expand_dims, Name::channels_as_pixels, moves_channels},
    {OpKind::depth_to_space, Name::channels_as_pixels},
    {OpKind::space_to_depth, Name::blocks_as_conv},
    {OpKind::resize_bilinear, Name::repeated_by_strides},
    {OpKind::resize_nearest_neighbor, Name::repeated_by_strides},
    {OpKind::mul, Name::constant_as_depthwise, is_by_constant},
    {OpKind::mul, Name::product_of_tensors, is_of_tensors},
    {OpKind::mul, Name::stage_activation, has_limits},
    {OpKind::leaky_relu, Name::leaky_as_sum, is_sum},
    {OpKind::leaky_relu, Name::byte_table, is_table},
    {OpKind::relu_n1_to_1, Name::byte_table},
    {OpKind::abs, Name::byte_table},
    {OpKind::logistic, Name::byte_table},
    {OpKind::tanh, Name::byte_table},
    {OpKind::hard_swish, Name::byte_table},
    {OpKind::elu, Name::byte_table},
    {OpKind::exp, Name::byte_table},
};

}  // namespace

std::span<const driver::Assumption> assumptions() { return kAssumptions; }

std::vector<const driver::Assumption*> assumptions_of(const ir::Graph& graph, ir::OpId op) {
  std::vector<const driver::Assumption*> out;
  const auto add = [&](Name name) { out.push_back(&kAssumptions[static_cast<size_t>(name)]); };
  for (const Basis& basis : kBases) {
    if (basis.kind == graph.op(op).kind && (basis.applies == nullptr || basis.applies(graph, op))) add(basis.name);
  }
  if (is_signed(graph, op)) add(Name::signed_by_128);
  add(Name::rule_values);
  add(Name::joined_tasks);
  return out;
}

}  // namespace skillet::drivers::rockchip
