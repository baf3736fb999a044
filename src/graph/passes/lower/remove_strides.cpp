// A stride that nothing takes, because one window is all there is.
#include <utility>

#include "graph/passes/rewrite.h"

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

}  // namespace

Result<void> remove_strides(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "remove_strides");
  rewriter.for_each_op([&](ir::OpId id) { unstride_op(rewriter, id); });
  return {};
}

}  // namespace skillet::passes
