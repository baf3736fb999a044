#include "drivers/rockchip/lower.h"

#include <algorithm>

#include "base/int_math.h"
#include "drivers/rockchip/choices.h"
#include "drivers/rockchip/elementwise.h"
#include "drivers/rockchip/placement.h"
#include "drivers/rockchip/pooling.h"
#include "drivers/rockchip/recorded.h"
#include "drivers/rockchip/tile.h"
#include "ir/macs.h"

namespace skillet::drivers::rockchip {
namespace {

using ir::OpKind;
using ir::TensorId;

uint64_t surface_bytes(const Plane& plane) { return static_cast<uint64_t>(plane.pixels()) * kAtom; }
uint64_t surfaces(int32_t channels) { return static_cast<uint64_t>(ceil_div(channels, kAtom)); }

class Lowerer {
 public:
  Lowerer(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning)
      : chip_(chip),
        graph_(graph),
        tuning_(tuning),
        places_(graph.tensors.size()),
        producers_(ir::producers(graph)),
        plan_(plan_placement(chip, graph, tuning)) {}

  Result<Lowered> run() {
    if (!tuning_.more_operations || !tuning_.exact_additions) {
      SK_TRY_ASSIGN(recorded_, recorded_plan(graph_, !tuning_.more_operations));
    }
    for (const TensorId input : graph_.inputs) {
      if (!graph_.tensor(input).is_constant()) define(input, driver::BufferRole::input);
    }
    for (op_ = 0; op_ < static_cast<ir::OpId>(graph_.ops.size()); ++op_) {
      if (const driver::Support support = supports(chip_, graph_, op_); !support.ok)
        return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(graph_, op_), support.reason);
      SK_TRY(lower_op(graph_.op(op_)).with_context(ir::describe_op(graph_, op_)));
    }
    return finish();
  }

 private:
  const ir::Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  std::optional<PlacedTensor>& placed(TensorId id) { return places_[static_cast<size_t>(id)]; }
  bool is_output(TensorId id) const { return std::ranges::count(graph_.outputs, id) != 0; }

  // ---- memory ----

  // Padding of convolutions that a PAD in front of them stands for.
  const std::optional<PadAmounts>& pads_of(TensorId id) const { return plan_.folded[static_cast<size_t>(id)]; }
  TensorId unpadded(TensorId id) const {
    return pads_of(id) ? graph_.op(producers_[static_cast<size_t>(id)]).inputs[0] : id;
  }

  PlacedTensor& define(TensorId id, driver::BufferRole role) {
    const ir::Tensor& t = tensor(id);
    const Plane plane = plane_of(t.shape);
    if (const auto& home = plan_.homes[static_cast<size_t>(id)]) {
      Place place = place_of(home->whole);
      place.offset_bytes += surface_bytes(plane) * surfaces(home->first_channel);
      placed(id) = PlacedTensor{id, place, false};
      return *placed(id);
    }
    const bool packed = role == driver::BufferRole::input && plan_.packed[static_cast<size_t>(id)];
    const bool whole = !packed || !tuning_.whole_groups;
    uint64_t size = whole ? surface_bytes(plane) * surfaces(plane.channels) : 0;
    if (!tuning_.whole_groups) size *= 2;  // as recorded
    size = std::max(size, layout_of(t, packed, tuning_).size_bytes);
    out_.slots.push_back({t.name, role, size});
    placed(id) = PlacedTensor{id, {static_cast<SlotId>(out_.slots.size() - 1), 0}, packed};
    return *placed(id);
  }
  // Of what an operation of ours makes, or as recorded will make.
  Place place_of(TensorId id) {
    if (placed(id)) return placed(id)->place;
    return define(id, is_output(id) ? driver::BufferRole::output : driver::BufferRole::scratch).place;
  }
  void touch(const Place& place, uint64_t bytes) {
    if (!tuning_.whole_groups) return;
    uint64_t& size = out_.slots[place.slot].size_bytes;
    size = std::max(size, place.offset_bytes + bytes);
  }
  bool comes_from_host(const Place& place) const { return out_.slots[place.slot].role == driver::BufferRole::input; }

  // Another tensor at the same memory. What the host writes and reads must not be the same.
  Result<void> alias(TensorId from, TensorId to, uint64_t offset_bytes) {
    Place place = place_of(from);
    place.offset_bytes += offset_bytes;
    const bool packed = placed(from)->packed;
    if (packed || (is_output(to) && comes_from_host(place)))
      return copy(view(from, to), to, place, place_of(to), {}, ir::Activation::none);
    placed(to) = PlacedTensor{to, place, false};
    if (is_output(to)) out_.slots[place.slot].role = driver::BufferRole::output;
    return {};
  }
  // The channels of `to` of a tensor that has its pixels.
  ir::Tensor view(TensorId from, TensorId to) const {
    ir::Tensor piece = tensor(from);
    piece.shape.dims.back() = plane_of(tensor(to).shape).channels;
    return piece;
  }

  // ---- operations ----

  void emit(std::string kind, Conv conv) {
    conv.division = tuning_.choice(op_, kTaskDivision);
    const Geometry g = geometry(conv, tuning_);
    touch(conv.input, input_bytes(conv, g));
    touch(conv.output, output_bytes(conv, g));
    if (conv.addition) touch(conv.addition->second, output_bytes(conv, g));
    out_.operations.push_back({op_, std::move(kind), std::move(conv)});
  }
  void emit(std::string kind, Pointwise work) { out_.operations.push_back({op_, std::move(kind), std::move(work)}); }

  Result<void> lower_op(const ir::Op& op) {
    switch (op.kind) {
      case OpKind::conv_2d:
      case OpKind::depthwise_conv_2d:
      case OpKind::fully_connected: return lower_conv(op);
      case OpKind::average_pool_2d:
      case OpKind::mean: return lower_average(op);
      case OpKind::add:
      case OpKind::sub: return lower_sum(op);
      case OpKind::mul: return lower_product(op);
      case OpKind::leaky_relu: return lower_leaky(op);
      case OpKind::relu_n1_to_1:
      case OpKind::abs:
      case OpKind::logistic:
      case OpKind::tanh:
      case OpKind::hard_swish:
      case OpKind::elu:
      case OpKind::exp: return lower_table(op);
      case OpKind::reduce_max:
      case OpKind::reduce_min:
      case OpKind::max_pool_2d: return lower_maximum(op);
      case OpKind::maximum:
      case OpKind::minimum: return lower_selection(op);
      case OpKind::resize_bilinear:
      case OpKind::resize_nearest_neighbor: return lower_enlarged(op);
      case OpKind::slice:
      case OpKind::strided_slice: return lower_moves(op);
      case OpKind::space_to_depth: return lower_blocks(op);
      case OpKind::concatenation: return lower_concatenation(op);
      case OpKind::split:
      case OpKind::split_v: return lower_division(op);
      case OpKind::pad: return pads_of(op.outputs[0]) ? Result<void>() : lower_copy(op, *pad_amounts(graph_, op));
      case OpKind::relu:
      case OpKind::relu6:
      case OpKind::quantize: return lower_copy(op, {});
      case OpKind::reshape:
      case OpKind::squeeze:
      case OpKind::expand_dims: return lower_reshape(op);
      default: return error(ErrorCode::internal, "supports() takes what lower() does not know");
    }
  }

  Result<void> lower_conv(const ir::Op& op) {
    if (!recorded_.empty()) return lower_as_recorded(op);
    const PadAmounts pads = pads_of(op.inputs[0]).value_or(PadAmounts{});
    SK_TRY_ASSIGN(std::vector<Conv> passes, make_passes(graph_, op_, tuning_, pads));
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
  Place temporary(const ir::Tensor& like) { return temporary(like.name + " (a part)", plane_of(like.shape)); }
  Place temporary(std::string name, const Plane& plane) {
    out_.slots.push_back(
        {std::move(name), driver::BufferRole::scratch, surface_bytes(plane) * surfaces(plane.channels)});
    return {static_cast<SlotId>(out_.slots.size() - 1), 0};
  }

  Result<void> lower_as_recorded(const ir::Op& op) {
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

  Result<void> emit_conv(const ir::Op& op, Conv conv, const Place& output, std::string_view what) {
    const TensorId source = unpadded(op.inputs[0]);
    conv.input = place_of(source);
    conv.packed = tuning_.packed_rows ? placed(source)->packed : conv.in.channels == 1;
    conv.output = output;
    emit(fmt::format("{} {}x{}{}", conv.depthwise ? "depthwise" : "conv", conv.kernel_height, conv.kernel_width, what),
         std::move(conv));
    return {};
  }

  Result<void> lower_average(const ir::Op& op) {
    const Window w = window_of(graph_, op_);
    if (leaves_image(w)) return lower_average_parts(op, w);
    const ir::Tensor &from = tensor(op.inputs[0]), &to = tensor(op.outputs[0]);
    const auto steps = average_steps(w);
    if (!steps || from.quant.scale() > to.quant.scale()) {
      SK_TRY_ASSIGN(Conv conv, make_average(graph_, op_, tuning_));
      return emit_from_to("average", op.inputs[0], op.outputs[0], std::move(conv));
    }
    SK_TRY_ASSIGN(AverageConvs convs, make_average_steps(*steps, from, to, activation_of(op), tuning_));
    SK_TRY_ASSIGN(convs.first.input, surfaces_of(op.inputs[0]));
    convs.first.output = convs.second.input = temporary(from.name + " (averages)", steps->first.out);
    convs.second.output = place_of(op.outputs[0]);
    emit("averages of parts", std::move(convs.first));
    emit("average", std::move(convs.second));
    return {};
  }
  Result<void> lower_average_parts(const ir::Op& op, const Window& w) {
    SK_TRY_ASSIGN(const std::vector<Move> parts, averages_of(w));
    for (const Move& part : parts) {
      SK_TRY_ASSIGN(Conv conv,
                    make_average_part(tensor(op.inputs[0]), tensor(op.outputs[0]), part, activation_of(op), tuning_));
      SK_TRY(emit_move("average of a part", op.inputs[0], op.outputs[0], part, std::move(conv)));
    }
    return {};
  }
  Result<void> emit_move(std::string kind, TensorId from, TensorId to, const Move& move, Conv conv) {
    SK_TRY_ASSIGN(conv.input, surfaces_of(from));
    conv.output = place_of(to);
    conv.input.offset_bytes += bytes_before(move);
    conv.output.offset_bytes += bytes_before_to(move);
    emit(std::move(kind), std::move(conv));
    return {};
  }
  Result<void> lower_moves(const ir::Op& op) {
    SK_TRY_ASSIGN(const std::vector<Move> parts, moves_of(graph_, op));
    const bool joins = op.kind == OpKind::concatenation;
    for (size_t i = 0; i < parts.size(); ++i) {
      const TensorId from = op.inputs[op.kind == OpKind::split ? 1 : joins ? i : 0];
      const TensorId to = op.outputs[joins ? 0 : i];
      SK_TRY_ASSIGN(Conv conv, make_average_part(tensor(from), tensor(to), parts[i], activation_of(op), tuning_));
      SK_TRY(emit_move("copy of a part", from, to, parts[i], std::move(conv)));
    }
    return {};
  }
  Result<void> lower_blocks(const ir::Op& op) {
    Conv conv = make_blocks(plane_of(tensor(op.inputs[0]).shape), plane_of(tensor(op.outputs[0]).shape));
    return emit_from_to("blocks", op.inputs[0], op.outputs[0], std::move(conv));
  }
  Result<void> emit_from_to(std::string kind, TensorId from, TensorId to, Conv conv) {
    SK_TRY_ASSIGN(conv.input, surfaces_of(from));
    conv.output = place_of(to);
    emit(std::move(kind), std::move(conv));
    return {};
  }
  // What reads surfaces cannot read packed rows; tensors that lie packed have other readers only.
  Result<Place> surfaces_of(TensorId id) {
    const Place place = place_of(id);
    if (placed(id)->packed) return error(ErrorCode::internal, "'{}' lies in rows of bytes", tensor(id).name);
    return place;
  }

  bool is_fused() const {
    return !tuning_.exact_additions &&
           std::ranges::any_of(recorded_, [&](const RecordedConv& conv) { return conv.add == op_; });
  }
  Result<void> lower_sum(const ir::Op& op) {
    if (is_fused()) return {};  // the convolution in front has it
    const SumScales scales = sum_scales(graph_, op);
    const TensorId main = op.inputs[scales.main], other = op.inputs[1 - scales.main];
    const int32_t sign = op.kind == OpKind::sub ? -1 : 1;
    SK_TRY_ASSIGN(Conv conv,
                  make_sum(tensor(main), tensor(other), tensor(op.outputs[0]), sign, activation_of(op), tuning_));
    SK_TRY_ASSIGN(conv.addition->second, surfaces_of(other));
    return emit_from_to(op.kind == OpKind::sub ? "subtract" : "add", main, op.outputs[0], std::move(conv));
  }

  // ---- elements ----

  Result<void> lower_product(const ir::Op& op) {
    const Product product = product_of(graph_, op);
    TensorId main = op.inputs[product.main], factor = op.inputs[1 - product.main];
    SK_TRY_ASSIGN(Conv conv, make_product(product, tensor(main), tensor(factor), tensor(op.outputs[0]),
                                          activation_of(op), tuning_));
    if (product.factor == Factor::pixel) std::swap(main, factor);
    if (conv.addition) {
      SK_TRY_ASSIGN(conv.addition->second, surfaces_of(factor));
    }
    return emit_from_to("multiply", main, op.outputs[0], std::move(conv));
  }

  Result<void> lower_leaky(const ir::Op& op) {
    const ir::Tensor &from = tensor(op.inputs[0]), &to = tensor(op.outputs[0]);
    const float alpha = op.as<ir::LeakyReluAttrs>().alpha;
    if (!is_leaky_sum(from, to, alpha)) return lower_table(op);
    const ir::Tensor positive = positive_part(from);
    SK_TRY_ASSIGN(Conv part, make_copy(from, positive, {}, ir::Activation::relu, tuning_));
    SK_TRY_ASSIGN(part.input, surfaces_of(op.inputs[0]));
    part.output = temporary(from);
    SK_TRY_ASSIGN(Conv sum, make_leaky_sum(from, positive, to, alpha, tuning_));
    sum.addition->second = part.output;
    emit("positive part", std::move(part));
    return emit_from_to("leaky sum", op.inputs[0], op.outputs[0], std::move(sum));
  }

  Result<void> lower_table(const ir::Op& op) {
    SK_TRY_ASSIGN(const auto values, table_of(graph_, op));
    SK_TRY_ASSIGN(const Place input, surfaces_of(op.inputs[0]));
    emit("table", Pointwise{.input = input,
                            .output = place_of(op.outputs[0]),
                            .atoms = atoms_of(plane_of(tensor(op.inputs[0]).shape)),
                            .table = std::make_shared<const std::array<int8_t, 256>>(values)});
    return {};
  }
  static int64_t atoms_of(const Plane& plane) { return plane.pixels() * ceil_div(plane.channels, kAtom); }

  Result<void> lower_selection(const ir::Op& op) {
    SK_TRY_ASSIGN(const Place first, surfaces_of(op.inputs[0]));
    SK_TRY_ASSIGN(const Place second, surfaces_of(op.inputs[1]));
    emit(op.kind == OpKind::minimum ? "minimum" : "maximum",
         Pointwise{.input = first,
                   .second = second,
                   .output = place_of(op.outputs[0]),
                   .atoms = atoms_of(plane_of(tensor(op.outputs[0]).shape)),
                   .smaller = op.kind == OpKind::minimum});
    return {};
  }

  // ---- pixels ----

  Result<void> lower_maximum(const ir::Op& op) {
    const Window w = maximum_window(graph_, op_);
    const Plane plane = corner_window(w).in;
    SK_TRY_ASSIGN(Place at, surfaces_of(op.inputs[0]));
    if (plane.pixels() != w.in.pixels()) {
      Conv border = make_border(w, tuning_);
      border.input = at;
      border.output = at = temporary(tensor(op.inputs[0]).name + " (border)", plane);
      emit("border", std::move(border));
    }
    int64_t atoms = atoms_of(plane);
    for (const int32_t step : steps_to(w.kernel_width)) at = larger(at, step, plane, atoms);
    for (const int32_t step : steps_to(w.kernel_height)) at = larger(at, step * plane.width, plane, atoms);
    Conv corners = make_corners(w, tuning_);
    corners.input = at;
    corners.output = place_of(op.outputs[0]);
    emit("corners", std::move(corners));
    return {};
  }
  // Each pixel or the one so many further on; the last ones have none and are nobody's first pixel.
  Place larger(const Place& from, int32_t pixels, const Plane& plane, int64_t& atoms) {
    atoms -= pixels;
    const Place to = temporary(fmt::format("maximum {}", out_.operations.size()), plane);
    Place moved = from;
    moved.offset_bytes += static_cast<uint64_t>(pixels) * kAtom;
    const bool smaller = graph_.op(op_).kind == OpKind::reduce_min;
    emit("maximum", Pointwise{.input = from, .second = moved, .output = to, .atoms = atoms, .smaller = smaller});
    return to;
  }

  Result<void> lower_enlarged(const ir::Op& op) {
    const Repeat repeat = *repeat_of(graph_, op);
    Plane plane = plane_of(tensor(op.inputs[0]).shape);
    SK_TRY_ASSIGN(Place at, surfaces_of(op.inputs[0]));
    if (repeat.rows == 1 && repeat.columns == 1)
      return copy(tensor(op.inputs[0]), op.outputs[0], at, place_of(op.outputs[0]), {}, ir::Activation::none);
    if (repeat.columns != 1) {
      const Plane narrow = plane;
      plane.width *= repeat.columns;
      const Place wide =
          repeat.rows == 1 ? place_of(op.outputs[0]) : temporary(tensor(op.inputs[0]).name + " (wide)", plane);
      emit_copies("repeated columns", repeat.columns, 1, at, wide,
                  [&](const Copies& copies) { return make_repeated_columns(narrow, repeat.columns, copies); });
      at = wide;
    }
    if (repeat.rows == 1) return {};
    emit_copies("repeated rows", repeat.rows, plane.width, at, place_of(op.outputs[0]),
                [&](const Copies& copies) { return make_repeated_rows(plane, repeat.rows, copies); });
    return {};
  }
  template <typename Make>
  void emit_copies(const std::string& kind, int32_t times, int32_t row_pixels, const Place& from, const Place& to,
                   const Make& make) {
    const std::vector<Copies> all = copies_of(times);
    for (const Copies& copies : all) {
      Conv conv = make(copies);
      conv.input = from;
      conv.output = to;
      conv.output.offset_bytes += bytes_before(copies, row_pixels);
      conv.shares_last = &copies != &all.back();
      emit(kind, std::move(conv));
    }
  }

  Result<void> copy(const ir::Tensor& from, TensorId to, const Place& input, const Place& output,
                    const PadAmounts& pads, ir::Activation activation) {
    ir::Tensor piece = tensor(to);
    if (pads.top + pads.bottom + pads.left + pads.right == 0) piece.shape = from.shape;
    SK_TRY_ASSIGN(Conv conv, make_copy(from, piece, pads, activation, tuning_));
    conv.input = input;
    conv.output = output;
    emit("copy", std::move(conv));
    return {};
  }
  Result<void> lower_copy(const ir::Op& op, const PadAmounts& pads) {
    SK_TRY_ASSIGN(const Place input, surfaces_of(op.inputs[0]));
    return copy(tensor(op.inputs[0]), op.outputs[0], input, place_of(op.outputs[0]), pads, activation_of(op));
  }

  // A copy of a single atom writes behind its end: in their order, and in one job.
  Result<void> lower_concatenation(const ir::Op& op) {
    if (axis_from_back(tensor(op.outputs[0]).shape, op.as<ir::ConcatAttrs>().axis) != 0) return lower_moves(op);
    Place output = place_of(op.outputs[0]);
    bool copied = false;
    for (const TensorId piece : op.inputs) {
      const ir::Tensor& from = tensor(piece);
      const std::optional<Home>& home = plan_.homes[static_cast<size_t>(piece)];
      if (!home || home->whole != op.outputs[0]) {  // it may lie in another one
        if (copied) out_.operations.back().continued = true;
        SK_TRY_ASSIGN(const Place input, surfaces_of(piece));
        SK_TRY(copy(from, op.outputs[0], input, output, {}, activation_of(op)));
        copied = true;
      }
      output.offset_bytes += surface_bytes(plane_of(from.shape)) * surfaces(plane_of(from.shape).channels);
    }
    return {};
  }

  Result<void> lower_division(const ir::Op& op) {
    const bool sized = op.kind == OpKind::split_v;
    const TensorId whole = op.inputs[sized ? 0 : 1];
    SK_TRY(surfaces_of(whole));
    const int32_t axis = tensor(op.inputs[sized ? 2 : 0]).values<int32_t>().at(0);
    if (axis_from_back(tensor(whole).shape, axis) != 0) return lower_moves(op);
    uint64_t offset = 0;
    for (const TensorId output : op.outputs) {
      const Plane plane = plane_of(tensor(output).shape);
      SK_TRY(alias(whole, output, offset));
      offset += surface_bytes(plane) * surfaces(plane.channels);
    }
    return {};
  }

  Result<void> lower_reshape(const ir::Op& op) {
    const TensorId from = op.inputs[0], to = op.outputs[0];
    SK_TRY(surfaces_of(from));
    return alias(from, to, 0);
  }

  Result<Lowered> finish() {
    for (const TensorId input : graph_.inputs) {
      if (placed(input)) out_.inputs.push_back(*placed(input));
    }
    for (const TensorId output : graph_.outputs) {
      if (!placed(output)) return error(ErrorCode::unsupported, "'{}' is not formed on the NPU", tensor(output).name);
      out_.outputs.push_back(*placed(output));
    }
    for (const auto& one : places_) {
      if (one) out_.intermediates.push_back(*one);
    }
    return std::move(out_);
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  const Tuning& tuning_;
  std::vector<RecordedConv> recorded_;  // by op; empty: nothing is as recorded
  std::vector<std::optional<PlacedTensor>> places_;
  const std::vector<ir::OpId> producers_;
  const Placement plan_;
  Lowered out_;
  ir::OpId op_ = 0;
};

}  // namespace

Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning) {
  return Lowerer(chip, graph, tuning).run();
}

}  // namespace skillet::drivers::rockchip
