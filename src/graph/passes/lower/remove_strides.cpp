// A stride that nothing takes, because one window is all there is; and one as large as the filter (patches of a vision
// transformer), where it is no chip's: convolutions that make blocks of 2x2 pixels channels leave one of stride 2.
#include <algorithm>
#include <utility>

#include "graph/passes/lower/picks.h"

namespace skillet::passes {
namespace {

template <typename Attrs>
bool takes_no_stride(const Attrs& attrs, const ir::Shape& in, int64_t height, int64_t width) {
  return attrs.padding == ir::Padding::valid && !attrs.rows && in[1] == height && in[2] == width &&
         (attrs.stride_h != 1 || attrs.stride_w != 1);
}

void unstride_op(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if (op.kind == ir::OpKind::transpose_conv || op.inputs.empty()) return;
  const ir::Shape& in = rewriter.tensor(op.inputs[0]).shape;
  if (auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs)) {
    const ir::Shape& filter = rewriter.tensor(op.inputs[1]).shape;
    if (!takes_no_stride(*conv, in, int64_t{filter[1] - 1} * conv->dilation_h + 1,
                         int64_t{filter[2] - 1} * conv->dilation_w + 1))
      return;
    conv->stride_h = conv->stride_w = 1;
  } else if (auto* pool = std::get_if<ir::PoolAttrs>(&op.attrs)) {
    if (!takes_no_stride(*pool, in, pool->filter_h, pool->filter_w)) return;
    pool->stride_h = pool->stride_w = 1;
  } else {
    return;
  }
  std::string text = fmt::format("{} of one window needs no stride", ir::op_name(op));
  rewriter.replace({.ops = {id}, .kept = id, .by = {std::move(op)}, .text = std::move(text)});
}

// Channel `c` of pixel (y, x) of each block becomes channel (2 y + x) channels + c.
ir::Op blocks(Rewriter& rewriter, ir::TensorId from) {
  ir::Tensor to = rewriter.tensor(from);
  const int32_t channels = to.shape[3];
  to.name += "/blocks";
  to.shape = {1, to.shape[1] / 2, to.shape[2] / 2, 4 * channels};
  ir::Op op{.kind = ir::OpKind::conv_2d,
            .attrs = ir::ConvAttrs{.padding = ir::Padding::valid, .stride_h = 2, .stride_w = 2}};
  op.inputs = {from, picks_in_order(rewriter, to.name + "/picks", to.dtype, {4 * channels, 2, 2, channels}),
               ir::kNoTensor};
  op.outputs = {rewriter.add(std::move(to))};
  return op;
}

// Of the image in blocks of 2x2.
ir::TensorId filter_of_blocks(Rewriter& rewriter, ir::TensorId id) {
  ir::Tensor filter = rewriter.tensor(id);
  const int32_t side = filter.shape[1], channels = filter.shape[3];
  Bytes bytes;
  for (int32_t out = 0; out < filter.shape[0]; ++out)
    for (int32_t block = 0; block < side * side / 4; ++block)
      for (int32_t pixel = 0; pixel < 4; ++pixel) {
        const int32_t y = block / (side / 2) * 2 + pixel / 2, x = block % (side / 2) * 2 + pixel % 2;
        const auto tap = filter.data.begin() + ((int64_t{out} * side + y) * side + x) * channels;
        bytes.insert(bytes.end(), tap, tap + channels);
      }
  return rewriter.add_constant(filter.name + "/blocks", filter.dtype,
                               {filter.shape[0], side / 2, side / 2, 4 * channels}, std::move(bytes), filter.quant);
}

bool makes_patches(const Rewriter& rewriter, const ir::Op& op) {
  const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs);
  if (op.kind != ir::OpKind::conv_2d || conv == nullptr || op.inputs[0] == ir::kNoTensor) return false;
  const ir::Tensor &image = rewriter.tensor(op.inputs[0]), &filter = rewriter.tensor(op.inputs[1]);
  constexpr int32_t kStrideMax = 32;
  constexpr int64_t kFilterMax = 1 << 20;  // weights that pick
  const int32_t side = conv->stride_h;
  const int64_t picks = int64_t{image.shape[3]} * side * side / 4;
  return side >= 4 && side <= kStrideMax && (side & (side - 1)) == 0 && conv->stride_w == side &&
         filter.is_constant() && ir::is_8bit(filter.dtype) && filter.shape[1] == side && filter.shape[2] == side &&
         filter.shape[3] == image.shape[3] && conv->dilation_h == 1 && conv->dilation_w == 1 && !conv->rows &&
         is_computed_byte(image) && image.shape[0] == 1 && image.shape[1] % side == 0 && image.shape[2] % side == 0 &&
         image.shape.elems() > 0 && picks * picks <= kFilterMax;
}

void patches(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (!makes_patches(rewriter, old) || rewriter.level(id) != Level::refused) return;
  ir::Op op = old;
  auto& conv = std::get<ir::ConvAttrs>(op.attrs);
  std::vector<ir::Op> by;
  while (conv.stride_h > 2) {
    by.push_back(blocks(rewriter, op.inputs[0]));
    op.inputs[0] = by.back().outputs[0];
    op.inputs[1] = filter_of_blocks(rewriter, op.inputs[1]);
    conv.stride_h = conv.stride_w = conv.stride_h / 2;
  }
  by.push_back(std::move(op));
  std::string text = fmt::format("CONV_2D of patches becomes {} of stride 2", by.size());
  rewriter.replace({.ops = {id}, .kept = id, .by = std::move(by), .text = std::move(text)});
}

}  // namespace

Result<void> remove_strides(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "remove_strides");
  rewriter.for_each_op([&](ir::OpId id) {
    unstride_op(rewriter, id);
    patches(rewriter, id);
  });
  return {};
}

}  // namespace skillet::passes
