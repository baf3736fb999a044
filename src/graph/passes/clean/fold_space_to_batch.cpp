// SPACE_TO_BATCH_ND, a convolution of each batch, BATCH_TO_SPACE_ND: a convolution with dilation.
// TensorFlow 1 writes dilation so.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

using Ints = std::vector<int32_t>;
constexpr int32_t kSizeMax = 64;  // of filters and blocks

std::optional<Ints> ints(const Rewriter& rewriter, ir::TensorId id, size_t count) {
  const ir::Tensor& tensor = rewriter.tensor(id);
  if (!tensor.is_constant() || tensor.dtype != ir::DType::int32) return std::nullopt;
  Ints values = tensor.values<int32_t>();
  if (values.size() != count) return std::nullopt;
  return values;
}

struct Blocks {
  ir::OpId before = -1, after = -1;  // the two ops around the convolution
  Ints size, pads, crops;            // rows, columns; pads and crops before and after each
};

std::optional<Blocks> blocks_around(const Rewriter& rewriter, ir::OpId id) {
  const ir::Op& conv = rewriter.op(id);
  Blocks out{.before = rewriter.only_producer(conv.inputs[0]), .after = rewriter.only_reader(conv.outputs[0])};
  if (out.before < 0 || out.after < 0) return std::nullopt;
  const ir::Op &to_batch = rewriter.op(out.before), &to_space = rewriter.op(out.after);
  if (to_batch.kind != ir::OpKind::space_to_batch_nd || to_space.kind != ir::OpKind::batch_to_space_nd)
    return std::nullopt;
  const auto size = ints(rewriter, to_batch.inputs[1], 2), back = ints(rewriter, to_space.inputs[1], 2);
  auto pads = ints(rewriter, to_batch.inputs[2], 4), crops = ints(rewriter, to_space.inputs[2], 4);
  if (!size || !back || !pads || !crops || *size != *back) return std::nullopt;
  out.size = *size;
  out.pads = std::move(*pads);
  out.crops = std::move(*crops);
  return out;
}

// What the dilated convolution does with one dimension of the image so that each window is the same; nothing: it
// cannot.
std::optional<ir::Padding> padding_of(const Blocks& blocks, size_t axis, int32_t in, int32_t out, int32_t kernel) {
  const int64_t extent = int64_t{kernel - 1} * blocks.size[axis] + 1;
  const int32_t before = blocks.pads[2 * axis] - blocks.crops[2 * axis];
  const SamePads same = same_pads(in, kernel, 1, blocks.size[axis]);
  if (before == same.before && out == same.outputs) return ir::Padding::same;
  if (before == 0 && out == in - extent + 1) return ir::Padding::valid;
  return std::nullopt;
}

}  // namespace

void fold_space_to_batch(Rewriter& rewriter, ir::OpId id) {
  const ir::Op& old = rewriter.op(id);
  if (old.kind != ir::OpKind::conv_2d && old.kind != ir::OpKind::depthwise_conv_2d) return;
  const auto& attrs = old.as<ir::ConvAttrs>();
  const bool plain = attrs.stride_h == 1 && attrs.stride_w == 1 && attrs.dilation_h == 1 && attrs.dilation_w == 1;
  const auto blocks = blocks_around(rewriter, id);
  if (!blocks || !plain || attrs.padding != ir::Padding::valid || attrs.rows) return;
  const ir::TensorId from = rewriter.op(blocks->before).inputs[0], to = rewriter.op(blocks->after).outputs[0];
  const ir::Shape &in = rewriter.tensor(from).shape, &out = rewriter.tensor(to).shape;
  const ir::Shape& filter = rewriter.tensor(old.inputs[1]).shape;
  if (in.rank() != 4 || out.rank() != 4 || rewriter.tensor(from).is_variable ||
      std::max({filter[1], filter[2], blocks->size[0], blocks->size[1]}) > kSizeMax ||
      !same_meaning(rewriter.tensor(from), rewriter.tensor(old.inputs[0])) ||
      !same_meaning(rewriter.tensor(to), rewriter.tensor(old.outputs[0])))
    return;
  const auto rows = padding_of(*blocks, 0, in[1], out[1], filter[1]);
  if (!rows || rows != padding_of(*blocks, 1, in[2], out[2], filter[2])) return;
  ir::Op op = old;
  op.inputs[0] = from;
  op.outputs[0] = to;
  auto& dilated = std::get<ir::ConvAttrs>(op.attrs);
  dilated.padding = *rows;
  dilated.dilation_h = blocks->size[0];
  dilated.dilation_w = blocks->size[1];
  std::string text =
      fmt::format("{} of batches becomes dilation {}x{}", ir::op_name(op), dilated.dilation_h, dilated.dilation_w);
  rewriter.replace({.ops = {blocks->before, id, blocks->after},
                    .kept = id,
                    .by = {std::move(op)},
                    .text = std::move(text),
                    .must_help = false});
}

}  // namespace skillet::passes
