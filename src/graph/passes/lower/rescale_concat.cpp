// CONCATENATION of tensors whose quantization differs from the result's: a 1x1 depthwise convolution on the chip for
// each such tensor. All bytes are tested with the CPU kernels.
#include <algorithm>
#include <utility>

#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

// `from` rescaled to the type of `to`, with the results of CONCATENATION.
std::optional<ir::Op> rescaled(Rewriter& rewriter, const ir::Op& join, ir::TensorId from, ir::TensorId to) {
  const ir::Tensor in = rewriter.tensor(from), out = rewriter.tensor(to);
  if (!is_pointwise(in, out)) return std::nullopt;
  auto op = pointwise(rewriter, from, to, ones(in.shape[3]));
  if (!op) return std::nullopt;
  ir::Op alone = join;
  alone.inputs = {from};
  alone.outputs = {to};
  return rewriter.same_bytes({alone}, {*op}, from, to) ? op : std::nullopt;
}

}  // namespace

void rescale_concat(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::concatenation) return;
  const ir::Tensor out = rewriter.tensor(old.outputs[0]);
  const auto differs = [&](ir::TensorId input) { return !same_meaning(rewriter.tensor(input), out); };
  if (std::ranges::none_of(old.inputs, differs) || rewriter.level(id) == Level::proven) return;
  std::vector<ir::Op> ops;
  ir::Op join = old;
  for (ir::TensorId& input : join.inputs) {
    if (!differs(input)) continue;
    ir::Tensor same = rewriter.tensor(input);
    same.name += "/rescaled";
    same.quant = out.quant;
    const ir::TensorId to = rewriter.add(std::move(same));
    const auto op = rescaled(rewriter, old, input, to);
    if (!op) return rewriter.drop();
    ops.push_back(*op);
    input = to;
  }
  ops.push_back(std::move(join));
  std::string text =
      fmt::format("CONCATENATION of other scales becomes one of {} DEPTHWISE_CONV_2D 1x1", ops.size() - 1);
  rewriter.replace(id, std::move(ops), std::move(text));
}

}  // namespace skillet::passes
