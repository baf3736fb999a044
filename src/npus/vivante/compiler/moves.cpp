#include "npus/vivante/compiler/moves.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/ref/resize.h"
#include "npus/vivante/compiler/support.h"

namespace skillet::npus::vivante {
namespace {

constexpr int32_t kFactorMax = 8;

// Planes are ordered by phase of rows, of columns, then by channel.
Moves from_depth(const Image& in, int32_t block) {
  const int64_t channels = in.channels / (int64_t{block} * block), width = int64_t{in.width} * block;
  const int64_t plane = width * in.height * block;
  Scatter job{.x = in.width, .y = in.height, .z = in.channels};
  job.along_x = {block, in.width};
  job.along_y = {width * block, in.height};
  job.along_z = {{plane, static_cast<int32_t>(channels)}, {1, block}, {width, block}};
  return {Layout::nchw_planar, {std::move(job)}};
}

// A job for each copy of a pixel.
Moves enlarged(const Image& in, int32_t rows, int32_t columns) {
  const int64_t width = int64_t{in.width} * columns, plane = width * in.height * rows;
  Moves out{Layout::nchw_planar, {}};
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t column = 0; column < columns; ++column) {
      Scatter job{.x = in.width, .y = in.height, .z = in.channels, .first = row * width + column};
      job.along_x = {columns, in.width};
      job.along_y = {width * rows, in.height};
      job.along_z = {{plane, in.channels}};
      out.jobs.push_back(std::move(job));
    }
  }
  return out;
}

// The factor by which each row is repeated, in order; 0: it is another kind of resize.
int32_t factor_of(int32_t in, int32_t out, const ir::ResizeAttrs& attrs) {
  if (out % in != 0 || out / in > kFactorMax) return 0;
  const std::vector<size_t> taps = ref::nearest_taps(in, out, attrs);
  const auto factor = static_cast<size_t>(out / in);
  for (size_t i = 0; i < taps.size(); ++i) {
    if (taps[i] != i / factor) return 0;
  }
  return out / in;
}

Result<Moves> resized(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape &from = graph.tensor(op.inputs[0]).shape, &to = graph.tensor(op.outputs[0]).shape;
  const auto& attrs = op.as<ir::ResizeAttrs>();
  const int32_t rows = factor_of(from[1], to[1], attrs), columns = factor_of(from[2], to[2], attrs);
  if (rows == 0 || columns == 0)
    return error(ErrorCode::unsupported, "{} to {}: rows and columns can be repeated 1 to {} times", from.to_string(),
                 to.to_string(), kFactorMax);
  return enlarged(image_of(from), rows, columns);
}

Result<Moves> transposed(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape& from = graph.tensor(op.inputs[0]).shape;
  std::vector<int32_t> order = graph.tensor(op.inputs[1]).values<int32_t>();
  for (int32_t& axis : order) axis += axis < 0 ? from.rank() : 0;
  const int32_t outer =
      from.rank() - 3;  // leading dimensions of 1 before those of an image; negative: missing dimensions
  std::array<int64_t, 3> step = {1, 1, 1};
  int64_t size = 1;
  for (int32_t to = 2; to >= 0; --to) {
    const int32_t at = to + outer;
    const int32_t axis = at < 0 ? to : order[static_cast<size_t>(at)] - outer;
    if (axis < 0) return error(ErrorCode::unsupported, "permutation [{}] moves the batch", fmt::join(order, ", "));
    step[static_cast<size_t>(axis)] = size;
    size *= from.back(2 - axis);
  }
  const Image in = image_of(from);
  Scatter job{.x = in.channels, .y = in.width, .z = in.height};
  job.along_x = {step[2], in.channels};
  job.along_y = {step[1], in.width};
  job.along_z = {{step[0], in.height}};
  return Moves{Layout::nhwc, {std::move(job)}};
}

}  // namespace

Result<Moves> moves_of(const ir::Graph& graph, const ir::Op& op) {
  const auto made = [&]() -> Result<Moves> {
    if (op.kind == ir::OpKind::transpose) return transposed(graph, op);
    if (op.kind == ir::OpKind::resize_nearest_neighbor) return resized(graph, op);
    return from_depth(image_of(graph.tensor(op.inputs[0]).shape), op.as<ir::BlockAttrs>().block_size);
  };
  SK_TRY_ASSIGN(Moves moves, made());
  if (!std::ranges::all_of(moves.jobs, fits))
    return error(ErrorCode::unsupported, "{} has rows beyond {} elements", graph.tensor(op.inputs[0]).shape.to_string(),
                 32768);
  return moves;
}

PadShape pad_shape(const ir::Graph& graph, ir::OpId id, Layout layout) {
  const Image i = image_of(graph.tensor(graph.op(id).inputs[0]).shape);
  const PadAmounts p = pad_amounts(graph, id);
  if (layout == Layout::nhwc)
    return {i.channels, i.width, i.height, p.before_c, p.after_c, p.before_w, p.after_w, p.before_h, p.after_h};
  return {i.width, i.height, i.channels, p.before_w, p.after_w, p.before_h, p.after_h, p.before_c, p.after_c};
}

}  // namespace skillet::npus::vivante
