// SPACE_TO_BATCH_ND, a convolution of each batch, BATCH_TO_SPACE_ND become a convolution with dilation.
// TensorFlow 1 writes dilation this way.
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
  std::vector<ir::OpId> ops;                              // ops to remove, in order, with those around the convolution
  ir::TensorId from = ir::kNoTensor, to = ir::kNoTensor;  // the image
  Ints size, pads, crops;                                 // rows, columns; pads and crops before and after each
};

// Values for two dimensions. A sequence (Conv1D) is an image of one row: `none` is inserted for its rows.
std::optional<Ints> of_image(std::optional<Ints> values, size_t each, int32_t none) {
  if (values && values->size() == each) values->insert(values->begin(), each, none);
  return values;
}

// True for a RESHAPE between sequences and images of one row.
bool adds_a_row(const Rewriter& rewriter, ir::TensorId rows, ir::TensorId image) {
  const ir::Shape &sequence = rewriter.tensor(rows).shape, &whole = rewriter.tensor(image).shape;
  return sequence.rank() == 3 && whole == ir::Shape{sequence[0], 1, sequence[1], sequence[2]};
}

std::optional<Blocks> blocks_around(const Rewriter& rewriter, ir::OpId id) {
  const ir::Op& conv = rewriter.op(id);
  ir::OpId before = rewriter.producer(conv.inputs[0]), after = rewriter.only_reader(conv.outputs[0]);
  if (before < 0 || after < 0 || rewriter.is_output(conv.inputs[0])) return std::nullopt;
  Blocks out;
  // Ops whose results have other readers stay.
  const auto add_before = [&](ir::OpId op) {
    if (rewriter.only_reader(rewriter.op(op).outputs[0]) >= 0) out.ops.insert(out.ops.begin(), op);
  };
  const bool is_row = rewriter.op(before).kind == ir::OpKind::reshape && rewriter.op(after).kind == ir::OpKind::reshape;
  if (is_row) {
    const ir::OpId adds_row = before;
    if (!adds_a_row(rewriter, rewriter.op(before).inputs[0], conv.inputs[0]) ||
        !adds_a_row(rewriter, rewriter.op(after).outputs[0], conv.outputs[0]))
      return std::nullopt;
    before = rewriter.producer(rewriter.op(adds_row).inputs[0]);
    if (before < 0) return std::nullopt;
    add_before(adds_row);
    if (!out.ops.empty()) add_before(before);
    out.ops.insert(out.ops.end(), {id, after});
    after = rewriter.only_reader(rewriter.op(after).outputs[0]);
    if (after < 0) return std::nullopt;
    out.ops.push_back(after);
  } else {
    add_before(before);
    out.ops.insert(out.ops.end(), {id, after});
  }
  const ir::Op &to_batch = rewriter.op(before), &to_space = rewriter.op(after);
  if (to_batch.kind != ir::OpKind::space_to_batch_nd || to_space.kind != ir::OpKind::batch_to_space_nd)
    return std::nullopt;
  const size_t axes = is_row ? 1 : 2;
  const auto size = of_image(ints(rewriter, to_batch.inputs[1], axes), 1, 1);
  const auto back = of_image(ints(rewriter, to_space.inputs[1], axes), 1, 1);
  auto pads = of_image(ints(rewriter, to_batch.inputs[2], 2 * axes), 2, 0);
  auto crops = of_image(ints(rewriter, to_space.inputs[2], 2 * axes), 2, 0);
  if (!size || !back || !pads || !crops || *size != *back) return std::nullopt;
  out.from = to_batch.inputs[0];
  out.to = to_space.outputs[0];
  out.size = *size;
  out.pads = std::move(*pads);
  out.crops = std::move(*crops);
  return out;
}

// True if the dilated convolution with this padding has the same windows along one dimension of the image.
bool has_same_windows(const Blocks& blocks, size_t axis, int32_t in, int32_t out, int32_t kernel, ir::Padding padding) {
  const int64_t extent = int64_t{kernel - 1} * blocks.size[axis] + 1;
  const int32_t before = blocks.pads[2 * axis] - blocks.crops[2 * axis];
  const SamePads same = same_pads(in, kernel, 1, blocks.size[axis]);
  if (padding == ir::Padding::same) return before == same.before && out == same.outputs;
  return before == 0 && out == in - extent + 1;
}

// Padding for rows and columns; nothing if neither kind fits.
std::optional<ir::Padding> padding_of(const Blocks& blocks, const ir::Shape& in, const ir::Shape& out,
                                      const ir::Shape& filter) {
  for (const ir::Padding padding : {ir::Padding::same, ir::Padding::valid}) {
    if (has_same_windows(blocks, 0, in[1], out[1], filter[1], padding) &&
        has_same_windows(blocks, 1, in[2], out[2], filter[2], padding))
      return padding;
  }
  return std::nullopt;
}

// A sequence as an image of one row.
ir::Shape image_of(const ir::Shape& shape) {
  return shape.rank() == 3 ? ir::Shape{shape[0], 1, shape[1], shape[2]} : shape;
}

}  // namespace

void fold_space_to_batch(Rewriter& rewriter, ir::OpId after) {
  if (rewriter.op(after).kind != ir::OpKind::batch_to_space_nd) return;
  ir::OpId id = rewriter.only_producer(rewriter.op(after).inputs[0]);
  if (id >= 0 && rewriter.op(id).kind == ir::OpKind::reshape) id = rewriter.only_producer(rewriter.op(id).inputs[0]);
  if (id < 0) return;
  const ir::Op& old = rewriter.op(id);
  if (old.kind != ir::OpKind::conv_2d && old.kind != ir::OpKind::depthwise_conv_2d) return;
  const auto& attrs = old.as<ir::ConvAttrs>();
  const bool plain = attrs.stride_h == 1 && attrs.stride_w == 1 && attrs.dilation_h == 1 && attrs.dilation_w == 1;
  const auto blocks = blocks_around(rewriter, id);
  if (!blocks || !plain || attrs.padding != ir::Padding::valid || attrs.rows) return;
  const ir::Tensor from = rewriter.tensor(blocks->from), to = rewriter.tensor(blocks->to);
  const ir::Shape in = image_of(from.shape), out = image_of(to.shape);
  const ir::Shape& filter = rewriter.tensor(old.inputs[1]).shape;
  if (in.rank() != 4 || out.rank() != 4 || from.is_variable ||
      std::max({filter[1], filter[2], blocks->size[0], blocks->size[1]}) > kSizeMax ||
      !same_meaning(from, rewriter.tensor(old.inputs[0])) || !same_meaning(to, rewriter.tensor(old.outputs[0])))
    return;
  const auto padding = padding_of(*blocks, in, out, filter);
  if (!padding) return;
  ir::Op op = old;
  auto& dilated = std::get<ir::ConvAttrs>(op.attrs);
  dilated.padding = *padding;
  dilated.dilation_h = blocks->size[0];
  dilated.dilation_w = blocks->size[1];
  std::string text =
      fmt::format("{} of batches becomes dilation {}x{}", ir::op_name(op), dilated.dilation_h, dilated.dilation_w);
  op.inputs[0] = blocks->from;
  op.outputs[0] = blocks->to;
  std::vector<ir::Op> by;
  if (in != from.shape) {
    op.inputs[0] = rewriter.add_like(from, "/image", in);
    op.outputs[0] = rewriter.add_like(to, "/image", out);
    by.push_back(rewriter.reshape(blocks->from, op.inputs[0]));
  }
  const ir::TensorId made = op.outputs[0];
  by.push_back(std::move(op));
  if (made != blocks->to) by.push_back(rewriter.reshape(made, blocks->to));
  rewriter.replace({.ops = blocks->ops, .kept = id, .by = std::move(by), .text = std::move(text), .must_help = false});
}

}  // namespace skillet::passes
