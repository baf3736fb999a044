// Constant operands of sums, products and the like, which no chip reads as images: the CPU writes a copy for each run,
// so that the op does not divide what is on the NPU. Positions of tokens, and the grid of a YOLO head.
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

bool is_elementwise(ir::OpKind kind) {
  return kind == ir::OpKind::add || kind == ir::OpKind::sub || kind == ir::OpKind::mul || kind == ir::OpKind::maximum ||
         kind == ir::OpKind::minimum;
}

}  // namespace

void copy_constants(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (!is_elementwise(old.kind) || old.inputs[0] == ir::kNoTensor || old.inputs[1] == ir::kNoTensor) return;
  const size_t at = rewriter.tensor(old.inputs[0]).is_constant() ? 0 : 1;
  const ir::TensorId computed = old.inputs[1 - at];
  ir::Tensor copy = rewriter.tensor(old.inputs[at]);
  if (!copy.is_constant() || !is_computed_byte(rewriter.tensor(computed)) ||
      copy.shape != rewriter.tensor(computed).shape || rewriter.level(id) != Level::refused ||
      !rewriter.has_neighbour(id, computed, old.outputs[0]))
    return;
  copy.name += "/copy";
  copy.data = {};
  copy.owner = {};
  ir::Op op = old;
  op.inputs[at] = rewriter.add(std::move(copy));
  std::vector<ir::Op> by = {rewriter.reshape(old.inputs[at], op.inputs[at])};
  by.push_back(std::move(op));
  rewriter.replace({.ops = {id},
                    .kept = id,
                    .by = std::move(by),
                    .text = fmt::format("the CPU writes the constant of {} as a tensor", ir::op_name(old)),
                    .on_cpu = 1});
}

}  // namespace skillet::passes
