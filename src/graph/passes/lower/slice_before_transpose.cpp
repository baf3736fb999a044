// Slices of a TRANSPOSE that the CPU computes come before it, on the NPU, and a RESHAPE between two TRANSPOSE takes
// their place if they only undo each other: heads of detectors are transposed, divided, and transposed back (YOLO).
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "graph/passes/lower/picks.h"

namespace skillet::passes {
namespace {

using Order = std::vector<int32_t>;

bool is_slice(const ir::Op& op) { return op.kind == ir::OpKind::slice || op.kind == ir::OpKind::strided_slice; }

bool only_moves(const Rewriter& rewriter, const ir::Op& op) {
  const ir::Tensor &from = rewriter.tensor(op.inputs[0]), &to = rewriter.tensor(op.outputs[0]);
  return is_computed_byte(from) && same_meaning(from, to);
}

// The CPU transposes what the NPU computed, and all that reads it takes slices.
bool divides_turned(Rewriter& rewriter, ir::OpId id) {
  const ir::Op& op = rewriter.op(id);
  const ir::OpId before = rewriter.producer(op.inputs[0]);
  const auto is_slice_of = [&](ir::OpId reader) { return is_slice(rewriter.op(reader)); };
  return before >= 0 && !rewriter.is_output(op.outputs[0]) && only_moves(rewriter, op) &&
         std::ranges::all_of(rewriter.readers(op.outputs[0]), is_slice_of) && rewriter.level(id) == Level::refused &&
         rewriter.level(before) != Level::refused;
}

// The part of the axis that was the last one before the TRANSPOSE; nothing if `slice` takes less of the other axes.
std::optional<Box> channels_of(const Rewriter& rewriter, const ir::Op& slice, const Order& order) {
  constexpr int64_t kElemsMax = 1 << 22;
  const ir::Shape &whole = rewriter.tensor(slice.inputs[0]).shape, &piece = rewriter.tensor(slice.outputs[0]).shape;
  if (whole.elems() > kElemsMax || piece.rank() != whole.rank()) return std::nullopt;
  const auto elements = picked(rewriter, slice);
  const auto box = elements.size() == 1 ? box_of(elements[0], whole) : std::nullopt;
  if (!box) return std::nullopt;
  Box out{.begin = {0, 0, 0, 0}, .size = {1, 1, 1, 0}};
  for (int32_t i = 0; i < whole.rank(); ++i) {
    const int32_t begin = box->begin[static_cast<size_t>(i)], size = box->size[static_cast<size_t>(i)];
    if (order[static_cast<size_t>(i)] == whole.rank() - 1)
      out.begin[3] = begin, out.size[3] = size;
    else if (size != whole[i])
      return std::nullopt;
    else
      out.size[1] *= size;
  }
  return out;
}

bool slice_first(Rewriter& rewriter, ir::OpId id) {
  const ir::Op slice = rewriter.op(id);
  const ir::OpId producer = is_slice(slice) ? rewriter.producer(slice.inputs[0]) : -1;
  const auto order = producer < 0 ? std::nullopt : transpose_order(rewriter, rewriter.op(producer));
  if (!order || !only_moves(rewriter, slice) || rewriter.level(id) == Level::refused ||
      !divides_turned(rewriter, producer))
    return false;
  const auto channels = channels_of(rewriter, slice, *order);
  if (!channels) return false;
  const ir::TensorId to = slice.outputs[0], from = rewriter.op(producer).inputs[0];
  const ir::Tensor whole = rewriter.tensor(from), result = rewriter.tensor(to);
  ir::Shape shape = whole.shape;
  shape.dims.back() = channels->size[3];
  // As a column, because rows may be longer than those of the chip.
  const int32_t pixels = channels->size[1];
  const ir::TensorId column = rewriter.add_like(result, "/whole", {1, pixels, 1, whole.shape.back(0)});
  const ir::TensorId taken = rewriter.add_like(result, "/taken", {1, pixels, 1, channels->size[3]});
  const ir::TensorId piece = rewriter.add_like(result, "/before", std::move(shape));
  const bool is_last = rewriter.only_reader(slice.inputs[0]) == id;
  std::vector<ir::Op> by = {rewriter.reshape(from, column), slice_of(rewriter, column, *channels, taken),
                            rewriter.reshape(taken, piece), rewriter.transpose(piece, to, *order)};
  return rewriter.replace({.ops = is_last ? std::vector{producer, id} : std::vector{id},
                           .kept = id,
                           .by = std::move(by),
                           .text = fmt::format("{} comes before TRANSPOSE", ir::op_name(slice)),
                           .must_help = is_last,
                           .then_cpu = 1});
}

// For each axis of `from`, how many of the adjacent axes of `to` divide it; nothing if they do not.
std::optional<Order> divisions(const ir::Shape& from, const ir::Shape& to) {
  Order out;
  size_t at = 0;
  for (const int32_t size : from.dims) {
    int64_t product = 1;
    int32_t count = 0;
    while (at < to.dims.size() && (product < size || count == 0)) product *= to.dims[at++], ++count;
    if (product != size) return std::nullopt;
    out.push_back(count);
  }
  if (at != to.dims.size()) return std::nullopt;
  return out;
}

// Where each axis of the result comes from, if the axes are divided before both TRANSPOSE; and the divided axes.
std::pair<ir::Shape, Order> divided_first(const ir::Shape& divided, const Order& counts, const Order& first,
                                          const Order& second) {
  Order starts(counts.size(), 0), places(divided.dims.size());
  for (size_t i = 1; i < counts.size(); ++i) starts[i] = starts[i - 1] + counts[i - 1];
  ir::Shape shape;
  for (size_t axis = 0; axis < first.size(); ++axis) {
    const auto i = static_cast<size_t>(std::ranges::find(first, static_cast<int32_t>(axis)) - first.begin());
    for (int32_t at = starts[i]; at < starts[i] + counts[i]; ++at) {
      places[static_cast<size_t>(at)] = static_cast<int32_t>(shape.dims.size());
      shape.dims.push_back(divided[at]);
    }
  }
  Order order;
  for (const int32_t axis : second) order.push_back(places[static_cast<size_t>(axis)]);
  return {std::move(shape), std::move(order)};
}

void merge_around_reshape(Rewriter& rewriter, ir::OpId id) {
  const auto second = transpose_order(rewriter, rewriter.op(id));
  const ir::OpId middle = second ? rewriter.only_producer(rewriter.op(id).inputs[0]) : -1;
  if (middle < 0 || rewriter.op(middle).kind != ir::OpKind::reshape) return;
  const ir::OpId start = rewriter.only_producer(rewriter.op(middle).inputs[0]);
  const auto first = start < 0 ? std::nullopt : transpose_order(rewriter, rewriter.op(start));
  if (!first) return;
  for (const ir::OpId one : {start, middle, id})
    if (!only_moves(rewriter, rewriter.op(one))) return;
  const ir::Shape& divided = rewriter.tensor(rewriter.op(middle).outputs[0]).shape;
  const auto counts = divisions(rewriter.tensor(rewriter.op(middle).inputs[0]).shape, divided);
  if (!counts) return;
  const auto [shape, order] = divided_first(divided, *counts, *first, *second);
  if (!keeps_order(shape, order)) return;
  ir::TensorId from = rewriter.op(start).inputs[0];
  std::vector<ir::OpId> ops = {start, middle, id};
  const ir::OpId before = rewriter.only_producer(from);
  if (before >= 0 && rewriter.op(before).kind == ir::OpKind::reshape && only_moves(rewriter, rewriter.op(before)))
    ops.insert(ops.begin(), before), from = rewriter.op(before).inputs[0];
  rewriter.replace({.ops = std::move(ops),
                    .kept = id,
                    .by = {rewriter.reshape(from, rewriter.op(id).outputs[0])},
                    .text = "TRANSPOSE, RESHAPE and TRANSPOSE become RESHAPE",
                    .must_help = false});
}

}  // namespace

void slice_before_transpose(Rewriter& rewriter, ir::OpId id) {
  if (!slice_first(rewriter, id)) merge_around_reshape(rewriter, id);
}

}  // namespace skillet::passes
