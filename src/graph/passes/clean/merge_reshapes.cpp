// RESHAPE, SQUEEZE and EXPAND_DIMS keep the bytes as they are: several become one RESHAPE, or none if the shape is the
// same.
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

bool is_reshape(const ir::Op& op) {
  return op.kind == ir::OpKind::reshape || op.kind == ir::OpKind::squeeze || op.kind == ir::OpKind::expand_dims;
}

}  // namespace

void merge_reshapes(Rewriter& rewriter, ir::OpId id) {
  const ir::Op op = rewriter.op(id);
  if (!is_reshape(op)) return;
  const ir::TensorId from = op.inputs[0], to = op.outputs[0];
  if (!is_computed_byte(rewriter.tensor(from)) || !same_meaning(rewriter.tensor(from), rewriter.tensor(to))) return;
  if (rewriter.tensor(from).shape == rewriter.tensor(to).shape &&
      rewriter.bypass({id}, from, fmt::format("{} to the same shape is nothing", ir::op_name(op))))
    return;
  const ir::OpId producer = rewriter.only_producer(from);
  if (producer >= 0 && is_reshape(rewriter.op(producer))) {
    const ir::Op first = rewriter.op(producer);
    const ir::TensorId source = first.inputs[0];
    if (is_computed_byte(rewriter.tensor(source)) && same_meaning(rewriter.tensor(source), rewriter.tensor(to)) &&
        rewriter.replace({.ops = {producer, id},
                          .kept = id,
                          .by = {rewriter.reshape(source, to)},
                          .text = fmt::format("{} and {} become one RESHAPE", ir::op_name(first), ir::op_name(op)),
                          .must_help = false}))
      return;
  }
  if (op.kind != ir::OpKind::reshape)
    rewriter.replace(id, {rewriter.reshape(from, to)}, fmt::format("{} becomes RESHAPE", ir::op_name(op)));
}

}  // namespace skillet::passes
