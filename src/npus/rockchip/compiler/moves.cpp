#include "npus/rockchip/compiler/moves.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

using ir::OpKind;

constexpr size_t kKindsMax = 9;  // middle, edges and corners

uint64_t bytes_of(const Plane& image, int32_t surface, int32_t top, int32_t left) {
  const int64_t pixels = surface * image.pixels() + int64_t{top} * image.width + left;
  return static_cast<uint64_t>(pixels * kAtom);
}

// Indices of one dimension.
struct Cut {
  int32_t begin = 0, step = 1;
};

std::optional<std::vector<int32_t>> ints_of(const ir::Tensor& tensor) {
  if (!tensor.is_constant() || tensor.dtype != ir::DType::int32) return std::nullopt;
  return tensor.values<int32_t>();
}

bool has_bit(int32_t mask, size_t i) { return (static_cast<uint32_t>(mask) >> i & 1) != 0; }

// The cuts, by dimension of the input.
Result<std::vector<Cut>> cuts_of(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape& shape = graph.tensor(op.inputs[0]).shape;
  const auto begins = ints_of(graph.tensor(op.inputs[1]));
  if (!begins) return error(ErrorCode::unsupported, "its begin is computed");
  std::vector<Cut> cuts(static_cast<size_t>(shape.rank()));
  if (begins->size() > cuts.size()) return error(ErrorCode::unsupported, "more begins than dimensions");
  std::vector<int32_t> steps(begins->size(), 1);
  ir::StridedSliceAttrs masks;
  if (op.kind == OpKind::strided_slice) {
    const auto given = ints_of(graph.tensor(op.inputs[3]));
    if (!given || given->size() != steps.size()) return error(ErrorCode::unsupported, "its steps are computed");
    steps = *given;
    masks = op.as<ir::StridedSliceAttrs>();
    if (masks.ellipsis_mask != 0 || masks.new_axis_mask != 0 || masks.shrink_axis_mask != 0)
      return error(ErrorCode::unsupported, "its output has other dimensions");
  }
  for (size_t i = 0; i < begins->size(); ++i) {
    const int32_t dim = shape[static_cast<int>(i)], begin = (*begins)[i];
    if (steps[i] < 1) return error(ErrorCode::unsupported, "a step of {}", steps[i]);
    cuts[i] = {has_bit(masks.begin_mask, i) ? 0 : std::clamp(begin < 0 ? begin + dim : begin, 0, dim), steps[i]};
  }
  return cuts;
}

Result<std::vector<Move>> slice(const ir::Graph& graph, const ir::Op& op) {
  SK_TRY_ASSIGN(const std::vector<Cut> cuts, cuts_of(graph, op));
  const ir::Shape& shape = graph.tensor(op.inputs[0]).shape;
  const Plane out = plane_of(graph.tensor(op.outputs[0]).shape);
  const auto back = [&](int i) {
    const int at = shape.rank() - 1 - i;
    return at < 0 ? Cut{} : cuts[static_cast<size_t>(at)];
  };
  const Cut channels = back(0), columns = back(1), rows = back(2);
  if (channels.step != 1 || channels.begin % kAtom != 0)
    return error(ErrorCode::unsupported, "channels from {} in steps of {}; the NPU keeps {} together", channels.begin,
                 channels.step, kAtom);
  return std::vector<Move>{{.from = plane_of(shape),
                            .to = out,
                            .top = rows.begin,
                            .left = columns.begin,
                            .surface = channels.begin / kAtom,
                            .stride_y = rows.step,
                            .stride_x = columns.step,
                            .size = out}};
}

// Pieces of rows (2) or columns (1), in the order of their places in the whole.
std::vector<Move> pieces(const Plane& whole, std::span<const Plane> parts, int32_t axis, bool joins) {
  std::vector<Move> out;
  int32_t at = 0;
  for (const Plane& part : parts) {
    Move move{.from = joins ? part : whole, .to = joins ? whole : part, .size = part};
    (axis == 2 ? (joins ? move.to_top : move.top) : (joins ? move.to_left : move.left)) = at;
    at += axis == 2 ? part.height : part.width;
    out.push_back(move);
  }
  return out;
}

// Outputs whose windows cover equally many pixels of a row or column, each window a stride after the one before.
struct Run {
  int32_t first_out = 0, count = 1, at = 0, kernel = 1;
};
std::vector<Run> runs_of(int32_t in, int32_t out, int32_t kernel, int32_t stride, int32_t pad) {
  std::vector<Run> runs;
  for (int32_t o = 0; o < out; ++o) {
    const int32_t start = o * stride - pad, at = std::clamp(start, 0, in);
    const int32_t held = std::clamp(start + kernel, 0, in) - at;
    if (!runs.empty() && runs.back().kernel == held && at == runs.back().at + runs.back().count * stride)
      ++runs.back().count;
    else
      runs.push_back({o, 1, at, held});
    if (runs.size() > kKindsMax) break;
  }
  return runs;
}

}  // namespace

Window window_of(const Move& move) {
  return {.in = {(move.size.height - 1) * move.stride_y + move.kernel_height, move.from.width, move.size.channels},
          .out = move.size,
          .kernel_height = move.kernel_height,
          .kernel_width = move.kernel_width,
          .stride_y = move.stride_y,
          .stride_x = move.stride_x,
          .depthwise = true};
}

int32_t gap_of(const Move& move) { return move.to.width - move.size.width; }

Conv make_move(const Move& move) {
  Conv conv = shape_of(window_of(move));
  conv.weights = Bytes(static_cast<size_t>(conv.taps()) * static_cast<size_t>(move.size.channels), kWeightZero + 1);
  conv.in_pitch = move.from.pixels();
  conv.out_pitch = move.to.pixels();
  conv.gap = gap_of(move);
  return conv;
}

uint64_t bytes_before(const Move& move) { return bytes_of(move.from, move.surface, move.top, move.left); }
uint64_t bytes_before_to(const Move& move) { return bytes_of(move.to, 0, move.to_top, move.to_left); }

int32_t axis_from_back(const ir::Shape& shape, int32_t axis) {
  return shape.rank() - 1 - (axis < 0 ? axis + shape.rank() : axis);
}

Result<std::vector<Move>> moves_of(const ir::Graph& graph, const ir::Op& op) {
  if (op.kind == OpKind::slice || op.kind == OpKind::strided_slice) return slice(graph, op);
  const bool joins = op.kind == OpKind::concatenation;
  int32_t axis = 0;
  ir::TensorId whole = joins ? op.outputs[0] : op.inputs[op.kind == OpKind::split_v ? 0 : 1];
  if (joins) {
    axis = op.as<ir::ConcatAttrs>().axis;
  } else {
    const auto given = ints_of(graph.tensor(op.inputs[op.kind == OpKind::split_v ? 2 : 0]));
    if (!given || given->size() != 1) return error(ErrorCode::unsupported, "the axis is computed");
    axis = given->front();
  }
  const int32_t back = axis_from_back(graph.tensor(whole).shape, axis);
  if (back < 1 || back > 2) return error(ErrorCode::unsupported, "axis {} is not an image axis", axis);
  std::vector<Plane> parts;
  for (const ir::TensorId id : joins ? op.inputs : op.outputs) parts.push_back(plane_of(graph.tensor(id).shape));
  return pieces(plane_of(graph.tensor(whole).shape), parts, back, joins);
}

bool leaves_image(const Window& w) {
  const auto beyond = [](int32_t in, int32_t out, int32_t kernel, int32_t stride, int32_t pad) {
    return pad > 0 || int64_t{out - 1} * stride + kernel - pad > in;
  };
  return beyond(w.in.height, w.out.height, w.kernel_height, w.stride_y, w.pad_top) ||
         beyond(w.in.width, w.out.width, w.kernel_width, w.stride_x, w.pad_left);
}

Result<std::vector<Move>> averages_of(const Window& w) {
  const std::vector<Run> rows = runs_of(w.in.height, w.out.height, w.kernel_height, w.stride_y, w.pad_top);
  const std::vector<Run> columns = runs_of(w.in.width, w.out.width, w.kernel_width, w.stride_x, w.pad_left);
  if (rows.size() * columns.size() > kKindsMax)
    return error(ErrorCode::unsupported, "windows that exclude padding in more than {} ways", kKindsMax);
  std::vector<Move> out;
  for (const Run& y : rows) {
    for (const Run& x : columns) {
      if (y.kernel < 1 || x.kernel < 1) return error(ErrorCode::unsupported, "a window that contains only padding");
      out.push_back({.from = w.in,
                     .to = w.out,
                     .top = y.at,
                     .left = x.at,
                     .kernel_height = y.kernel,
                     .kernel_width = x.kernel,
                     .stride_y = w.stride_y,
                     .stride_x = w.stride_x,
                     .to_top = y.first_out,
                     .to_left = x.first_out,
                     .size = {y.count, x.count, w.out.channels}});
    }
  }
  return out;
}

}  // namespace skillet::npus::rockchip
