// PAD by more than the chip supports at once becomes several PADs. Windows with more padding than it supports become
// PAD and windows without padding; the added values are the same.
#include <algorithm>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

constexpr int32_t kStepsMax = 8;

int32_t largest(const std::vector<int32_t>& amounts) { return amounts.empty() ? 0 : std::ranges::max(amounts); }

ir::Shape with_margins(ir::Shape shape, const std::vector<int32_t>& amounts) {
  for (size_t i = 0; i < shape.dims.size(); ++i) shape.dims[i] += amounts[2 * i] + amounts[2 * i + 1];
  return shape;
}

// PADs that add at most `step` on each side.
std::vector<ir::Op> steps_of(Rewriter& rewriter, ir::TensorId from, ir::TensorId result, std::vector<int32_t> left,
                             int32_t step) {
  std::vector<ir::Op> ops;
  while (largest(left) > 0) {
    std::vector<int32_t> now;
    for (int32_t& amount : left) {
      now.push_back(std::min(amount, step));
      amount -= now.back();
    }
    const ir::Tensor before = rewriter.tensor(from);
    const ir::TensorId amounts = rewriter.add_ints(before.name + "/margins", now, {before.shape.rank(), 2});
    ir::TensorId to = result;
    if (largest(left) > 0) to = rewriter.add_like(before, "/padded", with_margins(before.shape, now));
    ops.push_back({.kind = ir::OpKind::pad, .inputs = {from, amounts}, .outputs = {to}});
    from = to;
  }
  return ops;
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::pad) return;
  const ir::Tensor in = rewriter.tensor(old.inputs[0]), out = rewriter.tensor(old.outputs[0]);
  const ir::Tensor& margins = rewriter.tensor(old.inputs[1]);
  if (!is_computed_byte(in) || !is_computed_byte(out) || !same_meaning(in, out) || !margins.is_constant() ||
      margins.dtype != ir::DType::int32 || rewriter.level(id) == Level::proven)
    return;
  const std::vector<int32_t> amounts = margins.values<int32_t>();
  const int32_t most = largest(amounts);
  if (std::ssize(amounts) != 2 * in.shape.rank() || std::ranges::min(amounts) < 0) return;
  for (int32_t count = 2; count <= std::min(kStepsMax, most); ++count) {
    const int32_t step = (most - 1) / count + 1;
    std::vector<ir::Op> ops = steps_of(rewriter, old.inputs[0], old.outputs[0], amounts, step);
    std::string text = fmt::format("PAD by {} becomes {} of at most {}", most, ops.size(), step);
    if (rewriter.replace(id, std::move(ops), std::move(text))) return;
  }
}

// Margins around an image, so that its windows need no padding; empty: the windows have no padding `same`.
std::vector<int32_t> margins_of(const ir::ConvAttrs& attrs, const ir::Shape& in, const ir::Shape& filter) {
  if (attrs.padding != ir::Padding::same || attrs.rows || in.rank() != 4 || filter.rank() != 4 || attrs.stride_h < 1 ||
      attrs.stride_w < 1)
    return {};
  const SamePads rows = same_pads(in[1], filter[1], attrs.stride_h, attrs.dilation_h);
  const SamePads columns = same_pads(in[2], filter[2], attrs.stride_w, attrs.dilation_w);
  return {0, 0, rows.before, rows.after, columns.before, columns.after, 0, 0};
}

void take_apart(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::conv_2d && old.kind != ir::OpKind::depthwise_conv_2d) return;
  const ir::Tensor in = rewriter.tensor(old.inputs[0]);
  const std::vector<int32_t> margins =
      margins_of(old.as<ir::ConvAttrs>(), in.shape, rewriter.tensor(old.inputs[1]).shape);
  const int32_t most = largest(margins);
  if (most == 0 || !is_computed_byte(in) || rewriter.level(id) != Level::refused) return;
  for (int32_t count = 1; count <= std::min(kStepsMax, most); ++count) {
    ir::Op op = old;
    op.inputs[0] = rewriter.add_like(in, "/margin", with_margins(in.shape, margins));
    std::get<ir::ConvAttrs>(op.attrs).padding = ir::Padding::valid;
    std::vector<ir::Op> ops = steps_of(rewriter, old.inputs[0], op.inputs[0], margins, (most - 1) / count + 1);
    std::string text = fmt::format("{} with up to {} of padding becomes PAD and one without", ir::op_name(old), most);
    ops.push_back(std::move(op));
    if (rewriter.replace(id, std::move(ops), std::move(text))) return;
  }
}

}  // namespace

void split_pad(Rewriter& rewriter, ir::OpId id) {
  rewrite(rewriter, id);
  take_apart(rewriter, id);
}

}  // namespace skillet::passes
