// Converters enlarge an image by whole factors with TILE: each row, then each pixel is repeated by a TILE of an axis of
// size 1 between two RESHAPEs. These ops become RESIZE_NEAREST_NEIGHBOR, which chips support.
#include <algorithm>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

// Blocks of `inner` elements, each repeated `times`; nothing for any other TILE.
struct Repeat {
  int64_t outer = 1, inner = 1;
  int32_t times = 1;
};

std::optional<Repeat> repeat_of(const Rewriter& rewriter, const ir::Op& op) {
  const ir::Tensor& multiples = rewriter.tensor(op.inputs[1]);
  const ir::Shape& shape = rewriter.tensor(op.inputs[0]).shape;
  if (!multiples.is_constant() || multiples.dtype != ir::DType::int32) return std::nullopt;
  const std::vector<int32_t> values = multiples.values<int32_t>();
  const auto is_more = [](int32_t value) { return value != 1; };
  if (std::ranges::count_if(values, is_more) != 1) return std::nullopt;
  const auto axis = std::ranges::find_if(values, is_more) - values.begin();
  Repeat repeat{.times = values[static_cast<size_t>(axis)]};
  if (shape[static_cast<int>(axis)] != 1) return std::nullopt;
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? repeat.outer : repeat.inner) *= shape[i];
  return repeat;
}

bool is_reshape(const ir::Op& op) { return op.kind == ir::OpKind::reshape || op.kind == ir::OpKind::expand_dims; }

// The image (NHWC) after its rows or pixels were repeated; nothing if other elements were repeated.
std::optional<ir::Shape> enlarged(ir::Shape image, const Repeat& repeat) {
  const int64_t rows = int64_t{image[0]} * image[1], row = int64_t{image[2]} * image[3];
  const bool is_row = repeat.outer == rows && repeat.inner == row;
  if (!is_row && (repeat.outer != rows * image[2] || repeat.inner != image[3])) return std::nullopt;
  int32_t& size = image.dims[is_row ? 1 : 2];
  if (repeat.times < 1 || size > INT16_MAX / repeat.times) return std::nullopt;
  size *= repeat.times;
  return image;
}

}  // namespace

void lower_tile_as_resize(Rewriter& rewriter, ir::OpId last) {
  if (rewriter.op(last).kind != ir::OpKind::reshape) return;
  const ir::TensorId to = rewriter.op(last).outputs[0];
  std::vector<ir::OpId> ops{last};
  std::vector<Repeat> repeats;  // from the last one to the first
  for (;;) {                    // a TILE, and the RESHAPE before it
    const ir::OpId tile = rewriter.only_producer(rewriter.op(ops.back()).inputs[0]);
    if (tile < 0 || rewriter.op(tile).kind != ir::OpKind::tile) break;
    const ir::OpId before = rewriter.only_producer(rewriter.op(tile).inputs[0]);
    const auto repeat = repeat_of(rewriter, rewriter.op(tile));
    if (before < 0 || !is_reshape(rewriter.op(before)) || !repeat) return;
    ops.insert(ops.end(), {tile, before});
    repeats.push_back(*repeat);
  }
  if (repeats.empty()) return;
  const ir::TensorId from = rewriter.op(ops.back()).inputs[0];
  std::optional<ir::Shape> image = rewriter.tensor(from).shape;
  if (image->rank() != 4 || !is_computed_byte(rewriter.tensor(from)) ||
      !same_meaning(rewriter.tensor(from), rewriter.tensor(to)))
    return;
  for (auto repeat = repeats.rbegin(); image && repeat != repeats.rend(); ++repeat) image = enlarged(*image, *repeat);
  if (!image || !(*image == rewriter.tensor(to).shape)) return;
  std::ranges::reverse(ops);
  ir::Op resize{.kind = ir::OpKind::resize_nearest_neighbor, .attrs = ir::ResizeAttrs{}};
  resize.inputs = {from, rewriter.add_ints(rewriter.tensor(to).name + "/size", {(*image)[1], (*image)[2]})};
  resize.outputs = {to};
  rewriter.replace({.ops = std::move(ops),
                    .kept = last,
                    .by = {std::move(resize)},
                    .text = "TILEs that repeat rows and pixels become RESIZE_NEAREST_NEIGHBOR"});
}

}  // namespace skillet::passes
