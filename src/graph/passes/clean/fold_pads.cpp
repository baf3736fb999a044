// PAD before a convolution without padding becomes padding `same`, if it adds the same rows and columns.
// Keras writes MobileNet this way: ZeroPadding2D before each stride.
#include <optional>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

// The input of a PAD of rows and columns, and the numbers of rows and columns added before them.
struct Pad {
  ir::TensorId input = ir::kNoTensor;
  int32_t top = 0, left = 0;
};
std::optional<Pad> pad_of(const Rewriter& rewriter, const ir::Op& op) {
  if (op.kind != ir::OpKind::pad) return std::nullopt;
  const ir::Tensor &from = rewriter.tensor(op.inputs[0]), &to = rewriter.tensor(op.outputs[0]);
  const ir::Tensor& margins = rewriter.tensor(op.inputs[1]);
  if (!margins.is_constant() || margins.dtype != ir::DType::int32 || from.shape.rank() != 4 || from.is_variable ||
      !same_meaning(from, to))
    return std::nullopt;
  const auto values = margins.values<int32_t>();
  if (values.size() != 8 || values[0] != 0 || values[1] != 0 || values[6] != 0 || values[7] != 0) return std::nullopt;
  return Pad{op.inputs[0], values[2], values[4]};
}

bool is_padding_same(const SamePads& same, int32_t before, int32_t outputs) {
  return same.before == before && same.outputs == outputs;
}

}  // namespace

void fold_pads(Rewriter& rewriter, ir::OpId id) {
  const ir::Op& old = rewriter.op(id);
  if (old.kind != ir::OpKind::conv_2d && old.kind != ir::OpKind::depthwise_conv_2d) return;
  const auto& attrs = old.as<ir::ConvAttrs>();
  const ir::OpId producer = rewriter.only_producer(old.inputs[0]);
  if (producer < 0 || attrs.padding != ir::Padding::valid || attrs.rows) return;
  const auto pad = pad_of(rewriter, rewriter.op(producer));
  if (!pad) return;
  const ir::Shape &in = rewriter.tensor(pad->input).shape, &out = rewriter.tensor(old.outputs[0]).shape;
  const ir::Shape& filter = rewriter.tensor(old.inputs[1]).shape;
  if (!is_padding_same(same_pads(in[1], filter[1], attrs.stride_h, attrs.dilation_h), pad->top, out[1]) ||
      !is_padding_same(same_pads(in[2], filter[2], attrs.stride_w, attrs.dilation_w), pad->left, out[2]))
    return;
  ir::Op op = old;
  op.inputs[0] = pad->input;
  std::get<ir::ConvAttrs>(op.attrs).padding = ir::Padding::same;
  std::string text = fmt::format("{} pads its input itself", ir::op_name(op));
  rewriter.replace(
      {.ops = {producer, id}, .kept = id, .by = {std::move(op)}, .text = std::move(text), .must_help = false});
}

}  // namespace skillet::passes
