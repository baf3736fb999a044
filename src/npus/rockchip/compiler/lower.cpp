#include <xxhash.h>

#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/choices.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/lowerer.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {

using ir::OpKind;
using ir::TensorId;

Result<Lowered> Lowerer::run() {
  if (!tuning_.more_operations || !tuning_.exact_additions)
    SK_TRY_INTO(recorded_, recorded_plan(graph_, !tuning_.more_operations));
  for (const TensorId input : graph_.inputs) {
    if (!graph_.tensor(input).is_constant()) define(input, npu::BufferRole::input);
  }
  for (op_ = 0; op_ < static_cast<ir::OpId>(graph_.ops.size()); ++op_) {
    if (is_slope(op_)) continue;  // the preceding convolution does it
    const bool as_recorded = tuning_.has(hw::kVendorRecorded) && !tuning_.saturated_limits;
    const npu::Support support = as_recorded ? recorded_support() : supports(chip_, graph_, op_);
    if (!support.ok) return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(graph_, op_), support.reason);
    SK_TRY_IN_CONTEXT(lower_op(graph_.op(op_)), ir::describe_op(graph_, op_));
  }
  return finish();
}

// Registers refuse what the pooling unit cannot count.
npu::Support Lowerer::recorded_support() const {
  const OpKind kind = graph_.op(op_).kind;
  const bool by_unit = kind == OpKind::average_pool_2d || kind == OpKind::max_pool_2d || kind == OpKind::pad_v2;
  return by_unit ? npu::Support::yes() : supports_form(chip_, graph_, op_);
}

PlacedTensor& Lowerer::define(TensorId id, npu::BufferRole role) {
  const ir::Tensor& t = tensor(id);
  const Plane plane = plane_of(t.shape);
  if (const auto& home = plan_.homes[static_cast<size_t>(id)]) {
    Place place = home->sum >= 0 ? pair_place(home->sum, home->operand) : place_of(home->whole);
    place.offset_bytes += surface_bytes(plane) * surfaces(home->first_channel);
    placed(id) = PlacedTensor{id, place};
    return *placed(id);
  }
  const Form form = role == npu::BufferRole::input ? plan_.forms[static_cast<size_t>(id)] : Form::surfaces;
  const bool whole = form == Form::surfaces || !tuning_.whole_groups;
  uint64_t size = whole ? surface_bytes(plane) * surfaces(plane.channels) : 0;
  if (!tuning_.whole_groups) size *= 2;  // as recorded
  size = std::max(size, layout_of(t, form, tuning_).size_bytes);
  out_.slots.push_back({t.name, role, size});
  placed(id) = PlacedTensor{id, {static_cast<SlotId>(out_.slots.size() - 1), 0}, form};
  return *placed(id);
}

void Lowerer::share_weights(Conv& conv) {
  constexpr size_t kWorthSharing = 4096;
  if (conv.weights.size() < kWorthSharing) return;
  const uint64_t hash = XXH3_64bits(conv.weights.data(), conv.weights.size());
  const auto [first, last] = weights_.equal_range(hash);
  const auto same = std::find_if(first, last, [&](const auto& one) { return one.second == conv.weights; });
  if (same != last)
    conv.weights = same->second;
  else
    weights_.emplace(hash, conv.weights);
}

void Lowerer::emit(std::string kind, Conv conv) {
  share_weights(conv);
  if (tuning_.has(hw::kFoursOfPixels)) {
    if (conv.in_pitch == 0) conv.in_pitch = surface_pitch(conv.in, tuning_);
    if (conv.out_pitch == 0) conv.out_pitch = surface_pitch(conv.out, tuning_);
  }
  conv.division = tuning_.choice(op_, kTaskDivision);
  const Geometry g = geometry(conv, tuning_);
  touch(conv.input, input_bytes(conv, g));
  touch(conv.output, output_bytes(conv, g));
  if (conv.addition) touch(conv.addition->second, output_bytes(conv, g));
  out_.operations.push_back({op_, std::move(kind), std::move(conv)});
}

Result<void> Lowerer::lower_op(const ir::Op& op) {
  if (is_table(op.kind)) return lower_table(op);
  switch (op.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::fully_connected: return lower_conv(op);
    case OpKind::average_pool_2d:
    case OpKind::mean:
      return (tuning_.has(hw::kPoolsMaxima) && !tuning_.summed_averages) ? lower_pool(op) : lower_average(op);
    case OpKind::add:
    case OpKind::sub: return lower_sum(op);
    case OpKind::mul: return lower_product(op);
    case OpKind::leaky_relu: return lower_leaky(op);
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::max_pool_2d: return tuning_.has(hw::kPoolsMaxima) ? lower_pool(op) : lower_maximum(op);
    case OpKind::maximum:
    case OpKind::minimum: return lower_selection(op);
    case OpKind::resize_bilinear:
    case OpKind::resize_nearest_neighbor: return lower_enlarged(op);
    case OpKind::slice:
    case OpKind::strided_slice: return lower_moves(op);
    case OpKind::space_to_depth: return lower_blocks(op);
    case OpKind::depth_to_space: return lower_interleave(op);
    case OpKind::concatenation: return lower_concatenation(op);
    case OpKind::split:
    case OpKind::split_v: return lower_division(op);
    case OpKind::pad_v2:
      if (pads_of(op.outputs[0])) return {};
      return error(ErrorCode::unsupported, "only MAX_POOL_2D can pad");
    case OpKind::pad: return pads_of(op.outputs[0]) ? Result<void>() : lower_copy(op, *pad_amounts(graph_, op));
    case OpKind::relu:
    case OpKind::relu6: return lower_copy(op, {});
    case OpKind::quantize:
      return keeps_bytes(graph_, op, tuning_) ? alias(op.inputs[0], op.outputs[0], 0) : lower_copy(op, {});
    case OpKind::reshape:
    case OpKind::squeeze:
    case OpKind::expand_dims: return lower_reshape(op);
    default: return error(ErrorCode::internal, "supports() takes what lower() does not know");
  }
}

namespace {

// The graph in which the convolution's output has the quantization of the other operation's output.
ir::Graph with_output_of(const ir::Graph& graph, ir::OpId conv, ir::OpId other) {
  ir::Graph copy = graph;
  copy.tensor(graph.op(conv).outputs[0]).quant = graph.tensor(graph.op(other).outputs[0]).quant;
  return copy;
}

}  // namespace

Result<void> Lowerer::lower_conv(const ir::Op& op) {
  if (!recorded_.empty()) return lower_as_recorded(op);
  if (plan_.fused[static_cast<size_t>(op_)] >= 0) return {};  // lowered with the ADD
  const PadAmounts pads = pads_of(op.inputs[0]).value_or(PadAmounts{});
  if (const ir::OpId slope = slope_of(op_); slope >= 0) {
    SK_TRY_ASSIGN(Conv conv, make_conv(with_output_of(graph_, op_, slope), op_, tuning_, pads));
    conv.slope = true;
    return emit_conv(op, std::move(conv), place_of(graph_.op(slope).outputs[0]), " with a slope");
  }
  if (tuning_.has(hw::kOneShift)) {  // support.cpp has checked that one pass is fine enough
    SK_TRY_ASSIGN(std::vector<ConvPart> parts, make_parts(graph_, op_, tuning_, pads));
    const std::string_view what = parts.size() > 1 ? " of some channels" : "";
    for (ConvPart& part : parts)
      SK_TRY(emit_conv(op, std::move(part.conv), place_of(op.outputs[0]), what, part.first_channel));
    return {};
  }
  SK_TRY_ASSIGN(std::vector<Conv> passes, make_passes(graph_, op_, tuning_, pads));
  return emit_passes(op, std::move(passes));
}

ir::OpId Lowerer::slope_of(ir::OpId conv) const {
  const TensorId made = graph_.op(conv).outputs[0];
  if (!tuning_.has(hw::kVendorRecorded) || tuning_.own_slopes || is_output(made)) return -1;
  const std::vector<ir::OpId> readers = ir::consumers(graph_)[static_cast<size_t>(made)];
  return readers.size() == 1 && graph_.op(readers[0]).kind == OpKind::leaky_relu ? readers[0] : -1;
}
bool Lowerer::is_slope(ir::OpId op) const {
  if (graph_.op(op).kind != OpKind::leaky_relu) return false;
  const ir::OpId maker = producers_[static_cast<size_t>(graph_.op(op).inputs[0])];
  return maker >= 0 && graph_.op(maker).kind == OpKind::conv_2d && slope_of(maker) == op;
}

Result<void> Lowerer::emit_passes(const ir::Op& op, std::vector<Conv> passes) {
  const ir::Tensor& to = tensor(op.outputs[0]);
  std::optional<Place> sum;
  for (size_t i = 0; i < passes.size(); ++i) {
    const bool alone = passes.size() == 1;
    const Place result = alone ? place_of(op.outputs[0]) : temporary(to);
    SK_TRY(emit_conv(op, std::move(passes[i]), result, alone ? "" : " of some channels"));
    if (!alone && sum) {
      SK_TRY_ASSIGN(Conv conv, make_sum(to, to, to, 1, ir::Activation::none, tuning_));
      conv.input = *sum;
      conv.addition->second = result;
      conv.output = i + 1 < passes.size() ? temporary(to) : place_of(op.outputs[0]);
      sum = conv.output;
      emit("add", std::move(conv));
    } else {
      sum = result;
    }
  }
  return {};
}

Result<void> Lowerer::lower_as_recorded(const ir::Op& op) {
  const RecordedConv recorded = recorded_[static_cast<size_t>(op_)];
  const bool fused = !tuning_.exact_additions && recorded.add >= 0;
  SK_TRY_ASSIGN(Conv conv, make_conv(graph_, op_, tuning_, {}, !tuning_.exact_additions && recorded.in_addition));
  TensorId output = op.outputs[0];
  if (fused) {
    SK_TRY(fuse_addition(graph_, op_, recorded.add, tuning_, conv));
    conv.addition->second = place_of(graph_.op(recorded.add).inputs[1]);
    output = graph_.op(recorded.add).outputs[0];
  }
  return emit_conv(op, std::move(conv), place_of(output), fused ? " and addition" : "");
}

Result<void> Lowerer::emit_conv(const ir::Op& op, Conv conv, const Place& output, std::string_view what,
                                int32_t first_channel) {
  const TensorId source = unpadded(op.inputs[0]);
  conv.input = place_of(source);
  const Form form = placed(source)->form;
  // Recorded: tensors that the host writes have no gaps between surfaces.
  if (tuning_.has(hw::kVendorRecorded) && !tuning_.whole_groups && std::ranges::count(graph_.inputs, source) != 0)
    conv.in_pitch = conv.in.pixels();
  conv.packed = tuning_.packed_rows ? form == Form::pixels : conv.in.channels == 1;
  conv.output = output;
  conv.output.offset_bytes += surface_bytes(conv.out) * surfaces(first_channel);
  if (conv.depthwise) conv.input.offset_bytes += surface_bytes(conv.in) * surfaces(first_channel);
  std::string kind =
      fmt::format("{} {}x{}{}", conv.depthwise ? "depthwise" : "conv", conv.kernel_height, conv.kernel_width, what);
  if (form == Form::blocks) {
    read_blocks(conv);
    kind += " in blocks of 2x2";
  }
  const PadAmounts pads = pads_of(op.inputs[0]).value_or(PadAmounts{});
  if (conv.depthwise && tuning_.choice(op_, kDenseRest) != 0 &&
      dense_rest(chip_, with_pads(window_of(graph_, op_), pads)))
    emit_with_rest(kind, conv);
  else
    emit(std::move(kind), std::move(conv));
  return {};
}

// Whole groups of 64 channels, then the remaining channels.
void Lowerer::emit_with_rest(const std::string& kind, const Conv& whole) {
  const int32_t channels = whole.in.channels, groups = channels / kDepthwiseGroup * kDepthwiseGroup;
  emit(kind + " of groups", channels_of(whole, 0, groups, false));
  Conv rest = channels_of(whole, groups, channels - groups, true);
  rest.input.offset_bytes += surface_bytes(whole.in) * surfaces(groups);
  rest.output.offset_bytes += surface_bytes(whole.out) * surfaces(groups);
  emit(fmt::format("conv {}x{} of the rest", rest.kernel_height, rest.kernel_width), std::move(rest));
}

Result<Lowered> Lowerer::finish() {
  for (const TensorId input : graph_.inputs) {
    if (placed(input)) out_.inputs.push_back(*placed(input));
  }
  for (const TensorId output : graph_.outputs) {
    if (!placed(output)) return error(ErrorCode::unsupported, "'{}' is not made on the NPU", tensor(output).name);
    out_.outputs.push_back(*placed(output));
  }
  for (const auto& one : places_) {
    if (one) out_.intermediates.push_back(*one);
  }
  return std::move(out_);
}

Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, bool keep) {
  return Lowerer(chip, graph, tuning, keep).run();
}

}  // namespace skillet::npus::rockchip
