#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/choices.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/lowerer.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {

using ir::OpKind;
using ir::TensorId;

Result<void> Lowerer::alias(TensorId from, TensorId to, uint64_t offset_bytes) {
  Place place = place_of(from);
  place.offset_bytes += offset_bytes;
  if (is_output(to) && comes_from_host(place))
    return copy(view(from, to), to, place, place_of(to), {}, ir::Activation::none);
  placed(to) = PlacedTensor{to, place, placed(from)->form};
  if (is_output(to)) out_.slots[place.slot].role = npu::BufferRole::output;
  return {};
}

ir::Tensor Lowerer::view(TensorId from, TensorId to) const {
  ir::Tensor piece = tensor(from);
  piece.shape.dims.back() = plane_of(tensor(to).shape).channels;
  return piece;
}

Result<void> Lowerer::lower_average(const ir::Op& op) {
  const Window w = window_of(graph_, op_);
  if (leaves_image(w)) return lower_average_parts(op, w);
  const ir::Tensor &from = tensor(op.inputs[0]), &to = tensor(op.outputs[0]);
  const auto steps = average_steps(w, from, to);
  if (!steps) {
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

Result<void> Lowerer::lower_average_parts(const ir::Op& op, const Window& w) {
  SK_TRY_ASSIGN(const std::vector<Move> parts, averages_of(w));
  for (const Move& part : parts) {
    SK_TRY_ASSIGN(Conv conv,
                  make_average_part(tensor(op.inputs[0]), tensor(op.outputs[0]), part, activation_of(op), tuning_));
    SK_TRY(emit_move("average of a part", op.inputs[0], op.outputs[0], part, std::move(conv)));
  }
  return {};
}

Result<void> Lowerer::emit_move(std::string kind, TensorId from, TensorId to, const Move& move, Conv conv) {
  SK_TRY_ASSIGN(conv.input, surfaces_of(from));
  conv.output = place_of(to);
  conv.input.offset_bytes += bytes_before(move);
  conv.output.offset_bytes += bytes_before_to(move);
  emit(std::move(kind), std::move(conv));
  return {};
}

Result<void> Lowerer::lower_moves(const ir::Op& op) {
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

Result<void> Lowerer::lower_blocks(const ir::Op& op) {
  Conv conv = make_blocks(plane_of(tensor(op.inputs[0]).shape), plane_of(tensor(op.outputs[0]).shape));
  return emit_from_to("blocks", op.inputs[0], op.outputs[0], std::move(conv));
}

Result<void> Lowerer::lower_enlarged(const ir::Op& op) {
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
void Lowerer::emit_copies(const std::string& kind, int32_t times, int32_t row_pixels, const Place& from,
                          const Place& to, const Make& make) {
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

Result<void> Lowerer::copy(const ir::Tensor& from, TensorId to, const Place& input, const Place& output,
                           const PadAmounts& pads, ir::Activation activation) {
  ir::Tensor piece = tensor(to);
  if (pads.top + pads.bottom + pads.left + pads.right == 0) piece.shape = from.shape;
  SK_TRY_ASSIGN(Conv conv, make_copy(from, piece, pads, activation, tuning_));
  conv.input = input;
  conv.output = output;
  emit("copy", std::move(conv));
  return {};
}

Result<void> Lowerer::lower_copy(const ir::Op& op, const PadAmounts& pads) {
  SK_TRY_ASSIGN(const Place input, surfaces_of(op.inputs[0]));
  return copy(tensor(op.inputs[0]), op.outputs[0], input, place_of(op.outputs[0]), pads, activation_of(op));
}

Result<void> Lowerer::lower_concatenation(const ir::Op& op) {
  if (axis_from_back(tensor(op.outputs[0]).shape, op.as<ir::ConcatAttrs>().axis) != 0) return lower_moves(op);
  if (!are_surfaces(graph_, op.inputs)) return lower_joined(op);
  return copy_pieces(op, place_of(op.outputs[0]));
}

Result<void> Lowerer::lower_joined(const ir::Op& op) {
  const Joined joined = joined_of(graph_, op);
  Conv conv = make_joined(joined);
  conv.input = temporary(tensor(op.outputs[0]).name + " (pieces)", joined.from());
  conv.output = place_of(op.outputs[0]);
  SK_TRY(copy_pieces(op, conv.input));
  emit("joined channels", std::move(conv));
  return {};
}

// A copy of a single atom also writes after its end, so the copies stay in order and in one job.
Result<void> Lowerer::copy_pieces(const ir::Op& op, Place output) {
  bool copied = false;
  for (const TensorId piece : op.inputs) {
    const ir::Tensor& from = tensor(piece);
    const std::optional<Home>& home = plan_.homes[static_cast<size_t>(piece)];
    if (!home || home->whole != op.outputs[0]) {  // it may be in another one
      if (copied) out_.operations.back().continued = true;
      SK_TRY_ASSIGN(const Place input, surfaces_of(piece));
      SK_TRY(copy(from, op.outputs[0], input, output, {}, activation_of(op)));
      copied = true;
    }
    output.offset_bytes += surface_bytes(plane_of(from.shape)) * surfaces(plane_of(from.shape).channels);
  }
  return {};
}

Result<void> Lowerer::lower_division(const ir::Op& op) {
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

Result<void> Lowerer::lower_reshape(const ir::Op& op) {
  const TensorId from = op.inputs[0], to = op.outputs[0];
  if (!keeps_channels(tensor(from).shape, tensor(to).shape)) return lower_interleave(op);
  SK_TRY(surfaces_of(from));
  return alias(from, to, 0);
}

Result<void> Lowerer::lower_interleave(const ir::Op& op) {
  const Interleave all = *interleave_of(graph_, op);
  SK_TRY_ASSIGN(const Place from, surfaces_of(op.inputs[0]));
  const Place to = place_of(op.outputs[0]);
  if (all.rows == 1 && all.columns == 1)
    return copy(tensor(op.inputs[0]), op.outputs[0], from, to, {}, ir::Activation::none);
  const auto emit_all = [&](const char* kind, std::vector<InterleavePass> passes, const Place& in, const Place& out) {
    for (InterleavePass& pass : passes) {
      pass.conv.input = in;
      pass.conv.output = out;
      pass.conv.input.offset_bytes += pass.from_bytes;
      pass.conv.output.offset_bytes += pass.to_bytes;
      emit(kind, std::move(pass.conv));
    }
  };
  Place wide = to;
  if (all.rows > 1) {
    const int32_t lanes = all.rows * all.surfaces() * kAtom;
    wide = temporary(tensor(op.inputs[0]).name + " (wide)", {all.from.height, all.to.width, lanes});
  }
  emit_all("columns of channels", column_passes(all), from, wide);
  if (all.rows > 1) emit_all("rows of channels", row_passes(all), wide, to);
  return {};
}

}  // namespace skillet::npus::rockchip
