// CONCATENATION, PACK, SPLIT and UNPACK along an axis after dimensions of size 1 become the same op along channels: the
// pieces are contiguous, like the channels of a single pixel. CONCATENATION of long rows of pixels becomes one of
// images of several rows, if the chip does not take that. SLICE, STRIDED_SLICE, GATHER and SPLIT_V of contiguous
// elements become SPLIT_V of channels.
#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/passes/lower/picks.h"

namespace skillet::passes {
namespace {

bool is_join(ir::OpKind kind) { return kind == ir::OpKind::concatenation || kind == ir::OpKind::pack; }

// Axis in the shape that all pieces are parts of; -1: the op has none, or it is not known.
int32_t axis_of(const Rewriter& rewriter, const ir::Op& op, int32_t rank) {
  int32_t axis = 0;
  if (op.kind == ir::OpKind::concatenation) {
    axis = op.as<ir::ConcatAttrs>().axis;
  } else if (op.kind == ir::OpKind::split) {
    const ir::Tensor& operand = rewriter.tensor(op.inputs[0]);
    if (!operand.is_constant() || operand.dtype != ir::DType::int32 || operand.shape.elems() != 1) return -1;
    axis = operand.values<int32_t>()[0];
  } else {
    axis = op.kind == ir::OpKind::pack ? op.as<ir::PackAttrs>().axis : op.as<ir::UnpackAttrs>().axis;
  }
  if (axis < 0) axis += rank;
  return axis < 0 || axis >= rank ? -1 : axis;
}

struct Pieces {
  ir::TensorId whole = ir::kNoTensor;
  std::vector<ir::TensorId> pieces;
};
Pieces pieces_of(const ir::Op& op) {
  switch (op.kind) {
    case ir::OpKind::concatenation:
    case ir::OpKind::pack: return {op.outputs[0], op.inputs};
    case ir::OpKind::split: return {op.inputs[1], op.outputs};
    case ir::OpKind::unpack: return {op.inputs[0], op.outputs};
    default: return {};
  }
}

bool is_plain(const Rewriter& rewriter, const ir::Op& op, const Pieces& all) {
  const ir::Tensor& whole = rewriter.tensor(all.whole);
  const auto is_part = [&](ir::TensorId id) {
    const ir::Tensor& one = rewriter.tensor(id);
    return is_computed_byte(one) && same_meaning(one, whole) && one.shape.elems() > 0;
  };
  const bool limits =
      op.kind == ir::OpKind::concatenation && op.as<ir::ConcatAttrs>().activation != ir::Activation::none;
  return !limits && all.pieces.size() > 1 && is_computed_byte(whole) && std::ranges::all_of(all.pieces, is_part);
}

ir::TensorId flat(Rewriter& rewriter, ir::TensorId id) {
  const ir::Tensor& one = rewriter.tensor(id);
  return rewriter.add_like(one, "/flat", {1, 1, 1, static_cast<int32_t>(one.shape.elems())});
}

// The most columns of which all pieces, of so many pixels each, have whole rows.
int32_t columns_of(const Rewriter& rewriter, const Pieces& all) {
  constexpr int32_t kColumnsMax = 1024;
  int32_t common = 0;
  for (const ir::TensorId piece : all.pieces) common = std::gcd(common, rewriter.tensor(piece).shape.back(1));
  int32_t out = std::min(common, kColumnsMax);
  while (common % out != 0) --out;
  return out;
}

// Long rows of pixels, one after the other.
void rewrite_long_rows(Rewriter& rewriter, ir::OpId id, const Pieces& all, int32_t axis) {
  const ir::Op old = rewriter.op(id);
  const ir::Shape whole = rewriter.tensor(all.whole).shape;
  if (old.kind != ir::OpKind::concatenation || axis != whole.rank() - 2) return;
  const int32_t columns = columns_of(rewriter, all), channels = whole.back(0);
  if (columns == 1) return;
  const auto rows = [&](ir::TensorId one) {
    const ir::Tensor tensor = rewriter.tensor(one);
    return rewriter.add_like(tensor, "/rows", {1, tensor.shape.back(1) / columns, columns, channels});
  };
  std::vector<ir::Op> ops;
  ir::Op join{.kind = ir::OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = 1}};
  for (const ir::TensorId piece : all.pieces) {
    join.inputs.push_back(rows(piece));
    ops.push_back(rewriter.reshape(piece, join.inputs.back()));
  }
  join.outputs = {rows(all.whole)};
  ops.push_back(join);
  ops.push_back(rewriter.reshape(join.outputs[0], all.whole));
  std::string text = fmt::format("CONCATENATION of pixels becomes one of rows of {}", columns);
  rewriter.replace(id, std::move(ops), std::move(text));
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const Pieces all = pieces_of(old);
  if (all.whole == ir::kNoTensor || !is_plain(rewriter, old, all)) return;
  const ir::Shape whole = rewriter.tensor(all.whole).shape;
  const int32_t axis = axis_of(rewriter, old, whole.rank());
  const bool is_made = old.kind == ir::OpKind::concatenation || old.kind == ir::OpKind::split;
  if (axis < 0 || (is_made && axis == whole.rank() - 1)) return;
  for (int32_t i = 0; i < axis; ++i)
    if (whole[i] != 1) return;
  if (rewriter.level(id) == Level::proven) return;
  const ir::TensorId flat_whole = flat(rewriter, all.whole);
  std::vector<ir::TensorId> flat_pieces;
  for (const ir::TensorId piece : all.pieces) flat_pieces.push_back(flat(rewriter, piece));
  std::vector<ir::Op> ops;
  if (is_join(old.kind)) {
    for (size_t i = 0; i < all.pieces.size(); ++i) ops.push_back(rewriter.reshape(all.pieces[i], flat_pieces[i]));
    ops.push_back({.kind = ir::OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = 3}, .inputs = flat_pieces});
    ops.back().outputs = {flat_whole};
    ops.push_back(rewriter.reshape(flat_whole, all.whole));
  } else {
    ops.push_back(rewriter.reshape(all.whole, flat_whole));
    const ir::TensorId last = rewriter.add_ints(rewriter.tensor(all.whole).name + "/axis", {3});
    ops.push_back({.kind = ir::OpKind::split, .attrs = ir::SplitAttrs{static_cast<int32_t>(all.pieces.size())}});
    ops.back().inputs = {last, flat_whole};
    ops.back().outputs = flat_pieces;
    for (size_t i = 0; i < all.pieces.size(); ++i) ops.push_back(rewriter.reshape(flat_pieces[i], all.pieces[i]));
  }
  std::string text = fmt::format("{} along axis {} becomes {} of channels", ir::op_name(old), axis,
                                 is_join(old.kind) ? "CONCATENATION" : "SPLIT");
  if (!rewriter.replace(id, std::move(ops), std::move(text))) rewrite_long_rows(rewriter, id, all, axis);
}

bool picks_elements(ir::OpKind kind) {
  return kind == ir::OpKind::slice || kind == ir::OpKind::strided_slice || kind == ir::OpKind::gather ||
         kind == ir::OpKind::split_v;
}

bool follow_each_other(const std::vector<int32_t>& elements) {
  for (size_t i = 1; i < elements.size(); ++i)
    if (elements[i] != elements[0] + static_cast<int32_t>(i)) return false;
  return !elements.empty();
}

void rewrite_runs(Rewriter& rewriter, ir::OpId id) {
  constexpr int64_t kElemsMax = 1 << 22;
  const ir::Op old = rewriter.op(id);
  if (!picks_elements(old.kind) || old.inputs[0] == ir::kNoTensor || rewriter.level(id) != Level::refused) return;
  const ir::Tensor whole = rewriter.tensor(old.inputs[0]);
  const auto is_piece = [&](ir::TensorId to) { return same_meaning(whole, rewriter.tensor(to)); };
  if (!is_computed_byte(whole) || whole.shape.elems() > kElemsMax || !std::ranges::all_of(old.outputs, is_piece))
    return;
  const std::vector<std::vector<int32_t>> runs = picked(rewriter, old);
  if (runs.size() != old.outputs.size() || !std::ranges::all_of(runs, follow_each_other)) return;
  const ir::TensorId all = flat(rewriter, old.inputs[0]);
  ir::Op division{.kind = ir::OpKind::split_v};
  std::vector<ir::Op> ops = {rewriter.reshape(old.inputs[0], all)}, behind;
  std::vector<int32_t> sizes;
  const auto cut = [&](int32_t count) {
    ir::Tensor piece = rewriter.tensor(all);
    piece.name += fmt::format("/{}", sizes.size());
    piece.shape = {1, 1, 1, count};
    sizes.push_back(count);
    division.outputs.push_back(rewriter.add(std::move(piece)));
  };
  int32_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i][0] < at) return rewriter.drop();
    if (runs[i][0] > at) cut(runs[i][0] - at);
    cut(static_cast<int32_t>(std::ssize(runs[i])));
    behind.push_back(rewriter.reshape(division.outputs.back(), old.outputs[i]));
    at = runs[i].back() + 1;
  }
  if (at < whole.shape.elems()) cut(static_cast<int32_t>(whole.shape.elems()) - at);
  division.attrs = ir::SplitAttrs{static_cast<int32_t>(std::ssize(sizes))};
  division.inputs = {all, rewriter.add_ints(whole.name + "/sizes", sizes),
                     rewriter.add_ints(whole.name + "/axis", {3})};
  ops.push_back(std::move(division));
  ops.insert(ops.end(), behind.begin(), behind.end());
  std::string text = fmt::format("{} of what follows each other becomes SPLIT_V of channels", ir::op_name(old));
  rewriter.replace(id, std::move(ops), std::move(text));
}

}  // namespace

void lower_concat_axis(Rewriter& rewriter, ir::OpId id) {
  rewrite(rewriter, id);
  rewrite_runs(rewriter, id);
}

}  // namespace skillet::passes
