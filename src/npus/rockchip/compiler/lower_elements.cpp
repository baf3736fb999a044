#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/choices.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/fusion.h"
#include "npus/rockchip/compiler/lowerer.h"
#include "npus/rockchip/compiler/pooling.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {

using ir::OpKind;
using ir::TensorId;

Place Lowerer::pair_place(ir::OpId sum, int32_t operand) {
  const ir::Tensor& one = tensor(graph_.op(sum).inputs[0]);
  const uint64_t bytes = static_cast<uint64_t>(pair_plane(plane_of(one.shape), tuning_).operand_pixels() * kAtom);
  const auto [at, is_new] = pairs_.try_emplace(sum, static_cast<SlotId>(out_.slots.size()));
  if (is_new) out_.slots.push_back({one.name + " (and what is added)", npu::BufferRole::scratch, 2 * bytes});
  return {at->second, static_cast<uint64_t>(operand) * bytes};
}

// An operand in another place is copied.
Result<void> Lowerer::emit_pair(const ir::Op& op) {
  for (int32_t i = 0; i < 2; ++i) {
    const TensorId operand = op.inputs[static_cast<size_t>(i)];
    const std::optional<Home>& home = plan_.homes[static_cast<size_t>(operand)];
    if (home && home->sum == op_) continue;
    SK_TRY_ASSIGN(Conv conv, make_copy(tensor(operand), tensor(operand), {}, ir::Activation::none, tuning_));
    SK_TRY_ASSIGN(conv.input, surfaces_of(operand));
    conv.output = pair_place(op_, i);
    emit("copy", std::move(conv));
  }
  SK_TRY_ASSIGN(Conv conv, make_pair_sum(graph_, op, tuning_));
  conv.input = pair_place(op_, 0);
  conv.output = place_of(op.outputs[0]);
  emit(op.kind == OpKind::sub ? "subtract" : "add", std::move(conv));
  return {};
}

Result<void> Lowerer::lower_sum(const ir::Op& op) {
  if (tuning_.has(hw::kPairsOfSums)) return emit_pair(op);
  if (is_fused()) return {};  // the preceding convolution does it
  return plan_.fused[static_cast<size_t>(op_)] >= 0 ? lower_fused(op) : emit_sum(op);
}

Result<void> Lowerer::lower_fused(const ir::Op& add) {
  const ir::OpId id = op_;
  op_ = plan_.fused[static_cast<size_t>(id)];
  const ir::Op& op = graph_.op(op_);
  const TensorId own = op.outputs[0], other = add.inputs[add.inputs[0] == own ? 1 : 0], to = add.outputs[0];
  const PadAmounts pads = pads_of(op.inputs[0]).value_or(PadAmounts{});
  SK_TRY_ASSIGN(std::vector<Conv> passes, make_passes(graph_, op_, tuning_, pads));
  SK_TRY_ASSIGN(const Conv sum, make_sum(tensor(own), tensor(other), tensor(to), 1, activation_of(add), tuning_));
  if (passes.size() == 1 && fuse(passes[0], sum)) {
    SK_TRY_ASSIGN(passes[0].addition->second, surfaces_of(other));
    SK_TRY(emit_conv(op, std::move(passes[0]), place_of(to), " and addition"));
    op_ = id;
    return {};
  }
  SK_TRY(emit_passes(op, std::move(passes)));
  op_ = id;
  return emit_sum(add);
}

Result<void> Lowerer::emit_sum(const ir::Op& op) {
  const SumScales scales = sum_scales(graph_, op);
  const TensorId main = op.inputs[scales.main], other = op.inputs[1 - scales.main];
  const int32_t sign = op.kind == OpKind::sub ? -1 : 1;
  SK_TRY_ASSIGN(Conv conv,
                make_sum(tensor(main), tensor(other), tensor(op.outputs[0]), sign, activation_of(op), tuning_));
  SK_TRY_ASSIGN(conv.addition->second, surfaces_of(other));
  return emit_from_to(op.kind == OpKind::sub ? "subtract" : "add", main, op.outputs[0], std::move(conv));
}

Result<void> Lowerer::lower_product(const ir::Op& op) {
  const Product product = product_of(graph_, op);
  TensorId main = op.inputs[product.main], factor = op.inputs[1 - product.main];
  SK_TRY_ASSIGN(Conv conv,
                make_product(product, tensor(main), tensor(factor), tensor(op.outputs[0]), activation_of(op), tuning_));
  if (product.factor == Factor::pixel) std::swap(main, factor);
  if (conv.addition) SK_TRY_INTO(conv.addition->second, surfaces_of(factor));
  return emit_from_to("multiply", main, op.outputs[0], std::move(conv));
}

Result<void> Lowerer::lower_leaky(const ir::Op& op) {
  const ir::Tensor &from = tensor(op.inputs[0]), &to = tensor(op.outputs[0]);
  const float alpha = op.as<ir::LeakyReluAttrs>().alpha;
  if (tuning_.has(hw::kTablesBehind) || !is_leaky_sum(from, to, alpha)) return lower_table(op);
  const ir::Tensor positive = positive_part(from);
  SK_TRY_ASSIGN(Conv part, make_copy(from, positive, {}, ir::Activation::relu, tuning_));
  SK_TRY_ASSIGN(part.input, surfaces_of(op.inputs[0]));
  part.output = temporary(from);
  SK_TRY_ASSIGN(Conv sum, make_leaky_sum(from, positive, to, alpha, tuning_));
  sum.addition->second = part.output;
  emit("positive part", std::move(part));
  return emit_from_to("leaky sum", op.inputs[0], op.outputs[0], std::move(sum));
}

Result<void> Lowerer::lower_table(const ir::Op& op) {
  SK_TRY_ASSIGN(const auto values, table_of(graph_, op));
  if (tuning_.has(hw::kTablesBehind)) {
    SK_TRY_ASSIGN(Conv conv, make_table(tensor(op.inputs[0]), values, tuning_));
    return emit_from_to("table", op.inputs[0], op.outputs[0], std::move(conv));
  }
  SK_TRY_ASSIGN(const Place input, surfaces_of(op.inputs[0]));
  emit("table", Pointwise{.input = input,
                          .output = place_of(op.outputs[0]),
                          .atoms = atoms_of(plane_of(tensor(op.inputs[0]).shape)),
                          .table = std::make_shared<const std::array<int8_t, 256>>(values)});
  return {};
}

Result<void> Lowerer::lower_selection(const ir::Op& op) {
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

Result<void> Lowerer::lower_pool(const ir::Op& op) {
  const Window w = with_pads(window_of(graph_, op_), pads_of(op.inputs[0]).value_or(PadAmounts{}));
  Pool pool{.in = w.in, .out = w.out};
  pool.kernel_height = w.kernel_height, pool.kernel_width = w.kernel_width;
  pool.stride_y = w.stride_y, pool.stride_x = w.stride_x;
  pool.pad_top = w.pad_top, pool.pad_left = w.pad_left;
  pool.maximum = op.kind == OpKind::max_pool_2d;
  pool.input_zero = unsigned_zero(tensor(op.inputs[0]));
  SK_TRY_ASSIGN(pool.input, surfaces_of(unpadded(op.inputs[0])));
  pool.output = place_of(op.outputs[0]);
  out_.operations.push_back({op_, pool.maximum ? "max pool" : "average pool", pool});
  return {};
}

Result<void> Lowerer::lower_maximum(const ir::Op& op) {
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

Place Lowerer::larger(const Place& from, int32_t pixels, const Plane& plane, int64_t& atoms) {
  atoms -= pixels;
  const Place to = temporary(fmt::format("maximum {}", out_.operations.size()), plane);
  Place moved = from;
  moved.offset_bytes += static_cast<uint64_t>(pixels) * kAtom;
  const bool smaller = graph_.op(op_).kind == OpKind::reduce_min;
  emit("maximum", Pointwise{.input = from, .second = moved, .output = to, .atoms = atoms, .smaller = smaller});
  return to;
}

}  // namespace skillet::npus::rockchip
