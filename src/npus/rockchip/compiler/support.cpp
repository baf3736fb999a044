#include "npus/rockchip/compiler/support.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/int_math.h"
#include "npus/rockchip/compiler/assumptions.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/moves.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/packing.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/support_rules.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr double kUnitMax = 0.5, kOperandMax = 16;  // of additions, in steps of the output
constexpr int32_t kRepeatMax = 64;
constexpr int64_t kWeightsMax = 1 << 22;  // of operations that only move bytes
constexpr int32_t kGapMax = 8190;         // pixels after a row: 13 bits

Support filter(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor& filter = graph.tensor(op.inputs[1]);
  if (!filter.is_constant())
    return Support::no(Remedy::freeze, "'{}' is computed; the NPU's weights are constant", filter.name);
  if (filter.dtype != ir::DType::uint8 && filter.dtype != ir::DType::int8)
    return Support::no(npu::remedy_of_type(filter.dtype), "'{}' is {}; the NPU's weights have 8 bits", filter.name,
                       ir::dtype_name(filter.dtype));
  if (filter.quant.per_channel() && std::ranges::count(filter.quant.scales, 0.0F) != 0)
    return Support::no(Remedy::range, "'{}' has a channel with scale 0, which the NPU cannot use", filter.name);
  const auto good = [](float scale) { return scale >= kScaleMin && scale <= kScaleMax; };
  if (filter.quant.empty() || !std::ranges::all_of(filter.quant.scales, good))
    return Support::no(Remedy::reconvert, "'{}' has an invalid scale", filter.name);
  if (filter.dtype == ir::DType::uint8 && is_per_channel(filter.quant))
    return Support::no(Remedy::reconvert,
                       "'{}' is uint8 with a scale per channel, which TensorFlow Lite does not support", filter.name);
  const auto outputs = static_cast<size_t>(plane_of(graph.tensor(op.outputs[0]).shape).channels);
  if (is_per_channel(filter.quant) && filter.quant.scales.size() != outputs)
    return Support::no(Remedy::reconvert, "'{}' has {} scales for {} outputs", filter.name, filter.quant.scales.size(),
                       outputs);
  const std::vector<int32_t>& zeros = filter.quant.zero_points;
  const int32_t zero = unsigned_zero(filter);
  if (!chip.has(hw::kZeroPerKernel) && std::ranges::adjacent_find(zeros, std::ranges::not_equal_to()) != zeros.end())
    return Support::no(Remedy::reconvert, "'{}' has different zero points; the NPU takes one", filter.name);
  if (zero < 0 || zero > 255)
    return Support::no(Remedy::reconvert, "'{}' has a zero point outside its range", filter.name);
  const ir::TensorId bias = op.input(2);
  if (bias != ir::kNoTensor && (!graph.tensor(bias).is_constant() || graph.tensor(bias).dtype != ir::DType::int32))
    return Support::no(Remedy::reconvert, "'{}' is not a constant int32 bias", graph.tensor(bias).name);
  return Support::yes();
}

// Sums of products and biases, with or without zero points, must fit 32 bits. So must their product with the power of
// two above a gain of 1 or more, because the CPU kernels multiply by it first.
Support sums_fit(const ir::Graph& graph, const ir::Op& op, const Window& w, double gain) {
  const int64_t products = int64_t{w.kernel_height} * w.kernel_width * (w.depthwise ? 1 : w.in.channels);
  int64_t largest = 255 * 255 * products;
  if (const ir::TensorId bias = op.input(2); bias != ir::kNoTensor) {
    int64_t most = 0;
    for (const int32_t value : graph.tensor(bias).values<int32_t>()) most = std::max(most, std::abs(int64_t{value}));
    largest += most;
  }
  int exponent = 0;
  std::frexp(gain, &exponent);
  const double factor = std::ldexp(1.0, std::max(exponent, 0));
  if (static_cast<double>(largest) * factor <= std::numeric_limits<int32_t>::max()) return Support::yes();
  return Support::no(Remedy::range, "{} products and a bias may add up to {}; times {:g} that exceeds 32 bits",
                     products, largest, factor);
}

Support convolution(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &weights = graph.tensor(op.inputs[1]);
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  const Support first = all_of({takes(from), takes(to), filter(chip, graph, op), same_types(from, to),
                                same_types(from, weights), takes_activation(activation_of(op))});
  if (!first.ok) return first;
  const Window w = window_of(graph, id);
  if (op.kind == OpKind::conv_2d && weights.shape.back(0) != w.in.channels)
    return Support::no(Remedy::groups, "a filter for {} of {} channels; the NPU has no grouped convolutions",
                       weights.shape.back(0), w.in.channels);
  if (op.kind == OpKind::fully_connected &&
      weights.shape.back(0) != int64_t{w.kernel_height} * w.kernel_width * w.in.channels)
    return Support::no(Remedy::reconvert, "{} weights for rows of {}", weights.shape.back(0), w.in.channels);
  const float largest = std::ranges::max(weights.quant.scales);
  const double gain = double{from.quant.scale()} * largest / to.quant.scale();
  return all_of({fits(chip, w), takes_gain(gain), sums_fit(graph, op, w, gain)});
}

Support fit(const hw::ChipRow& chip, std::span<const Move> moves) {
  Support all = Support::yes();
  for (const Move& move : moves) {
    if (gap_of(move) > kGapMax)
      return Support::no(Remedy::split, "{} of {} columns; the NPU skips at most {}", move.size.width, move.to.width,
                         kGapMax);
    const Support one = fits(chip, window_of(move));
    if (!one.ok) return one;
    if (one.unproven) all = one;
  }
  return all;
}

Support average(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  const Support first = all_of({takes(from), takes(to), takes_activation(activation_of(op))});
  if (!first.ok) return first;
  if (op.kind == OpKind::mean) {
    if (!image_axes(graph, op)) return Support::no(Remedy::average, "a mean over axes other than rows and columns");
  } else if (const Support same = keeps_values(from, to); !same.ok) {  // TensorFlow Lite's kernel rescales nothing
    return same;
  }
  const Window w = window_of(graph, id);
  const Support gain = takes_gain(double{from.quant.scale()} / to.quant.scale() / (w.kernel_height * w.kernel_width));
  if (leaves_image(w)) {
    const auto parts = averages_of(w);
    if (!parts.ok()) return Support::no(Remedy::split, "{}", parts.error().message);
    return all_of({gain, fit(chip, *parts)});
  }
  if (const auto steps = average_steps(w, from, to))
    return all_of({gain, fits(chip, steps->first), fits(chip, steps->second)});
  return all_of({fits(chip, w), gain});
}

Support copy(const hw::ChipRow& chip, const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads,
             ir::Activation activation) {
  const Support size = pads.none() ? fits_flat(from) : fits(chip, copy_window(from, to, pads));
  return all_of({takes(from), takes(to), takes_activation(activation), size,
                 takes_gain(double{from.quant.scale()} / to.quant.scale())});
}

Support pad(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  if (const Support bytes = takes(graph.tensor(op.inputs[0])); !bytes.ok) return bytes;
  const auto pads = pad_amounts(graph, op);
  if (!pads) return Support::no(Remedy::form, "the NPU pads rows and columns, by constant amounts");
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  if (const Support same = keeps_values(from, to); !same.ok) return same;
  return copy(chip, from, to, *pads, ir::Activation::none);
}

Support sum(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &a = graph.tensor(op.inputs[0]), &b = graph.tensor(op.inputs[1]);
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  const Support first = all_of({takes(a), takes(b), takes(to), takes_activation(activation_of(op))});
  if (!first.ok) return first;
  if (a.shape != b.shape)
    return Support::no(Remedy::shapes, "'{}' and '{}' differ in shape; the NPU does not broadcast", a.name, b.name);
  const SumScales scales = sum_scales(graph, op);
  // One operand is rounded to units of the sum, and the gain of the other has 15 bits: both must be fine enough.
  const double step = to.quant.scale();
  if (!is_valid(operand_gain(scales.ratio)) || scales.unit > kUnitMax * step ||
      double{scales.ratio} * scales.unit > kOperandMax * step)
    return Support::no(Remedy::range, "the scales of '{}' and '{}' are too far from that of their sum", a.name, b.name);
  const Support limits = limits_of(to, activation_of(op)).upper
                             ? Support::yes_unproven("an upper limit after an addition")
                             : Support::yes();
  return all_of({fits_flat(a), takes_gain(double{scales.unit} / to.quant.scale()), limits});
}

Support product(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const Product kind = product_of(graph, op);
  const ir::Tensor &main = graph.tensor(op.inputs[kind.main]), &factor = graph.tensor(op.inputs[1 - kind.main]);
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  if (kind.factor == Factor::none)
    return Support::no(Remedy::shapes, "'{}' is {}, '{}' {}: neither the same shape nor one pixel of it", main.name,
                       main.shape.to_string(), factor.name, factor.shape.to_string());
  ir::Tensor computed = factor;
  computed.data = {};
  if (kind.factor == Factor::constant && factor.shape.rank() == 0) computed.shape = {1};
  const Support first = all_of({takes(main), takes(computed), takes(to), takes_activation(activation_of(op))});
  if (!first.ok) return first;
  const double unit = double{main.quant.scale()} * factor.quant.scale(), step = to.quant.scale();
  if (limits_of(to, activation_of(op)).upper && unit > kUnitMax * step)
    return Support::no(Remedy::range, "an upper limit that is not a step of the product");
  if (kind.factor == Factor::constant)
    return all_of({fits(chip, {.in = plane_of(main.shape), .out = plane_of(to.shape), .depthwise = true}),
                   takes_gain(unit / step)});
  const Plane plane = plane_of(main.shape);
  if (kind.factor == Factor::pixel && plane.pixels() < kSurfaceMin && plane.channels > kLaneGroup)
    return Support::no(Remedy::form, "{} pixels of {} channels; the NPU reads beyond a second operand of fewer than {}",
                       plane.pixels(), plane.channels, kSurfaceMin);
  const Support flat = fits_flat(main);
  if (!flat.ok) return flat;
  const Plane column{static_cast<int32_t>(plane.pixels()), 1, plane.channels};
  const Support size =
      kind.factor == Factor::element ? flat : fits(chip, {.in = column, .out = column, .depthwise = true});
  return all_of(
      {size, takes_gain(unit / step),
       Support::yes_unproven("a product of two tensors: recorded only with floats, and with bytes without a scale")});
}

Support table(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  if (const Support first = all_of({takes(from), takes(to), fits_flat(from)}); !first.ok) return first;
  if (const auto values = table_of(graph, op); !values.ok())
    return Support::no(Remedy::range, "{}", values.error().message);
  return Support::yes_unproven("a table for bytes: tables were recorded only with 16-bit floats");
}

Support leaky(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  const float alpha = op.as<ir::LeakyReluAttrs>().alpha;
  const Support by_table = table(graph, op);
  if (!by_table.ok || !is_leaky_sum(from, to, alpha)) return by_table;
  return takes_gain(double{from.quant.scale()} / to.quant.scale());
}

// MAXIMUM and MINIMUM of two tensors.
Support selection(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &a = graph.tensor(op.inputs[0]), &b = graph.tensor(op.inputs[1]);
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  for (const ir::Tensor* bound : {&a, &b})
    if (bound->is_constant())
      return Support::no(npu::remedy_of_constant(graph, op),
                         "'{}' is constant; the NPU takes constants only as weights", bound->name);
  if (const Support first = all_of({takes(a), takes(b), takes(to), fits_flat(a)}); !first.ok) return first;
  if (a.shape != b.shape)
    return Support::no(Remedy::shapes, "'{}' and '{}' differ in shape; the NPU does not broadcast", a.name, b.name);
  if (a.quant != b.quant || a.quant != to.quant)
    return Support::no(Remedy::same_scale, "'{}', '{}' and '{}' differ in quantization; the NPU compares bytes", a.name,
                       b.name, to.name);
  return Support::yes();
}

Support blocks(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  if (const Support first = all_of({takes(from), takes(to)}); !first.ok) return first;
  if (const Support same = keeps_values(from, to); !same.ok) return same;
  const Plane out = plane_of(to.shape);
  if (int64_t{out.channels} * out.channels > kWeightsMax)
    return Support::no(Remedy::split, "{} output channels: each has a weight for each of the others", out.channels);
  return fits(chip, blocks_window(plane_of(from.shape), out));
}

Support maximum(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  if (const Support first = all_of({takes(from), takes(to)}); !first.ok) return first;
  if (const Support same = keeps_values(from, to); !same.ok) return same;
  if (op.kind != OpKind::max_pool_2d && !image_axes(graph, op))
    return Support::no(Remedy::form, "it reduces axes other than rows and columns");
  const Limits limits = limits_of(to, activation_of(op));
  if (limits.lower || limits.upper || !takes_activation(activation_of(op)).ok)
    return Support::no(Remedy::activation, "a limit after the maximum");
  const Window w = maximum_window(graph, id);
  if (w.pad_top < 0 || w.pad_left < 0) return Support::no(Remedy::none, "a maximum of part of an image");
  return all_of({fits(chip, border_window(w)), fits(chip, corner_window(w))});
}

Support enlarged(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  if (const Support first = all_of({takes(from), takes(to), fits_flat(from), fits_flat(to)}); !first.ok) return first;
  if (const Support same = keeps_values(from, to); !same.ok) return same;
  const auto repeat = repeat_of(graph, op);
  if (!repeat && op.kind == OpKind::resize_bilinear)
    return Support::no(Remedy::none, "{} to {} interpolates pixels, with weights that depend on their position",
                       from.shape.to_string(), to.shape.to_string());
  if (!repeat)
    return Support::no(Remedy::form, "{} to {} does not repeat all pixels equally often", from.shape.to_string(),
                       to.shape.to_string());
  const Plane plane = plane_of(from.shape), wide{plane.height, plane.width * repeat->columns, plane.channels};
  const int64_t gap = int64_t{repeat->rows - 1} * wide.width;
  if (std::max(repeat->rows, repeat->columns) > kRepeatMax || (repeat->rows > 1 && gap > kGapMax))
    return Support::no(Remedy::form, "rows {} times and columns {} times; the NPU takes {} and skips at most {} pixels",
                       repeat->rows, repeat->columns, kRepeatMax, kGapMax);
  const auto window = [](const Conv& conv) { return Window{.in = conv.in, .out = conv.out}; };
  std::vector<Support> parts;
  for (const Copies& copies : copies_of(repeat->columns))
    parts.push_back(fits(chip, window(make_repeated_columns(plane, repeat->columns, copies))));
  for (const Copies& copies : copies_of(repeat->rows))
    parts.push_back(fits(chip, window(make_repeated_rows(wide, repeat->rows, copies))));
  return all_of(parts);
}

// Pieces must begin at multiples of 16 channels, which share an atom.
Support pieces(const ir::Graph& graph, std::span<const ir::TensorId> parts) {
  if (are_surfaces(graph, parts)) return Support::yes();
  return Support::no(Remedy::form, "a piece that ends within a group of {} channels", kAtom);
}

// Unchanged rows, columns or channels in other places; those of CONCATENATION may be requantized.
Support moves(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const auto parts = moves_of(graph, op);
  if (!parts.ok()) return Support::no(Remedy::split, "{}", parts.error().message);
  const bool joins = op.kind == OpKind::concatenation;
  const ir::Activation activation = activation_of(op);
  for (size_t i = 0; i < parts->size(); ++i) {
    const size_t input = op.kind == OpKind::split ? 1 : joins ? i : 0;
    const ir::Tensor &from = graph.tensor(op.inputs[input]), &to = graph.tensor(op.outputs[joins ? 0 : i]);
    const Support one = all_of({takes(from), takes(to), same_types(from, to), takes_activation(activation),
                                takes_gain(double{from.quant.scale()} / to.quant.scale())});
    if (!one.ok) return one;
    if (const Support same = keeps_values(from, to); !joins && !same.ok) return same;
  }
  return fit(chip, *parts);
}

Support concatenation(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  const auto& attrs = op.as<ir::ConcatAttrs>();
  if (axis_from_back(to.shape, attrs.axis) != 0) return moves(chip, graph, op);
  if (!are_surfaces(graph, op.inputs)) {
    const Joined joined = joined_of(graph, op);
    if (joined.weights() > kWeightsMax)
      return Support::no(Remedy::split, "{} channels, each with a weight for each of the others", joined.lanes);
    if (const Support one = fits(chip, {.in = joined.from(), .out = joined.to}); !one.ok) return one;
  }
  for (const ir::TensorId input : op.inputs) {
    const ir::Tensor& from = graph.tensor(input);
    ir::Tensor piece = to;
    piece.shape = from.shape;
    if (const Support one = copy(chip, from, piece, {}, attrs.activation); !one.ok || one.unproven) return one;
  }
  return takes(to);
}

// The parts are views of the whole; if the host writes the whole and reads a part, it is a copy.
Support division(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const bool sized = op.kind == OpKind::split_v;
  const ir::Tensor& from = graph.tensor(op.inputs[sized ? 0 : 1]);
  const ir::Tensor& axis = graph.tensor(op.inputs[sized ? 2 : 0]);
  if (!axis.is_constant() || axis.dtype != ir::DType::int32 || axis.shape.elems() != 1)
    return Support::no(Remedy::freeze, "the axis is computed");
  if (axis_from_back(from.shape, axis.values<int32_t>().at(0)) != 0) return moves(chip, graph, op);
  for (const ir::TensorId output : op.outputs) {
    const ir::Tensor& to = graph.tensor(output);
    if (to.quant != from.quant)
      return Support::no(Remedy::same_scale, "the pieces and the whole have different scales");
    if (const Support one = copy(chip, to, to, {}, ir::Activation::none); !one.ok) return one;
  }
  return all_of({takes(from), pieces(graph, op.outputs)});
}

// Channels as pixels side by side.
Support interleaved(const hw::ChipRow& chip, const ir::Tensor& from, const ir::Tensor& to, const Interleave& all) {
  if (const Support first = all_of({takes(from), takes(to), fits_flat(from), fits_flat(to)}); !first.ok) return first;
  if (const Support same = keeps_values(from, to); !same.ok) return same;
  const int64_t gap = all.rows > 1 ? int64_t{all.rows - 1} * all.to.width : all.columns - 1;
  if (std::max(all.rows, all.columns) > kRepeatMax || gap > kGapMax)
    return Support::no(Remedy::form, "{} rows and {} columns of each pixel; the NPU takes {} and skips at most {}",
                       all.rows, all.columns, kRepeatMax, kGapMax);
  if (weights_of(all) > kWeightsMax)
    return Support::no(Remedy::split, "{} channels, each with a weight for each of the others", all.from.channels);
  std::vector<Support> parts = {Support::yes()};
  for (const auto& passes : {column_passes(all), row_passes(all)})
    for (const InterleavePass& pass : passes) parts.push_back(fits(chip, {.in = pass.conv.in, .out = pass.conv.out}));
  return all_of(parts);
}

Support pixels_of_channels(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  return interleaved(chip, graph.tensor(op.inputs[0]), graph.tensor(op.outputs[0]), *interleave_of(graph, op));
}

// A reshape that keeps channels moves nothing.
Support reshape(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  const Support first = all_of({takes(to), copy(chip, from, from, {}, ir::Activation::none)});
  if (!first.ok) return first;
  if (from.quant != to.quant) return Support::no(Remedy::same_scale, "its output has a different quantization");
  if (keeps_channels(from.shape, to.shape)) return Support::yes();
  if (const auto all = interleave_of(graph, op)) return interleaved(chip, from, to, *all);
  return Support::no(Remedy::form, "{} to {} moves channels, which are in groups of {}", from.shape.to_string(),
                     to.shape.to_string(), kAtom);
}

Support by_kind(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (is_table(op.kind)) return table(graph, op);
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::fully_connected: return convolution(chip, graph, id);
    case OpKind::average_pool_2d:
    case OpKind::mean: return average(chip, graph, id);
    case OpKind::add:
    case OpKind::sub: return sum(graph, op);
    case OpKind::concatenation: return concatenation(chip, graph, op);
    case OpKind::split:
    case OpKind::split_v: return division(chip, graph, op);
    case OpKind::pad: return pad(chip, graph, op);
    case OpKind::reshape:
    case OpKind::squeeze:
    case OpKind::expand_dims: return reshape(chip, graph, op);
    case OpKind::mul: return product(chip, graph, op);
    case OpKind::leaky_relu: return leaky(graph, op);
    case OpKind::slice:
    case OpKind::strided_slice: return moves(chip, graph, op);
    case OpKind::maximum:
    case OpKind::minimum: return selection(graph, op);
    case OpKind::space_to_depth: return blocks(chip, graph, op);
    case OpKind::depth_to_space: return pixels_of_channels(chip, graph, op);
    case OpKind::resize_bilinear:
    case OpKind::resize_nearest_neighbor: return enlarged(chip, graph, op);
    case OpKind::relu:
    case OpKind::relu6:
    case OpKind::quantize:
      return copy(chip, graph.tensor(op.inputs[0]), graph.tensor(op.outputs[0]), {}, activation_of(op));
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::max_pool_2d: return maximum(chip, graph, id);
    case OpKind::transpose_conv:
      return Support::no(Remedy::none, "the NPU's deconvolution was recorded only with 16-bit floats");
    default: return no_program(graph, id);
  }
}

}  // namespace

Support takes_window(const hw::ChipRow& chip, const Window& w) { return fits(chip, w); }

Support supports_form(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) { return by_kind(chip, graph, id); }

Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  if (!chip.has_registers())
    return Support::no(Remedy::none, "the {} is known by name only: {}", chip.title, chip.missing);
  Support support = by_kind(chip, graph, id);
  const Packing* const packing = packing_of(chip);
  if (packing != nullptr) support = packing->takes(graph, id, support);
  if (!support.ok) return support;
  support.stands_on = packing != nullptr ? packing->assumptions_of(chip, graph, id) : assumptions_of(graph, id);
  return support;
}

}  // namespace skillet::npus::rockchip
