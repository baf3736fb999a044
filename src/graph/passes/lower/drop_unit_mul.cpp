// MUL by one value that changes no byte, because the scale of its result has the same factor, becomes RESHAPE between
// operations of the CPU: the NPU would get and return the same bytes (the factor of attention, before SOFTMAX).
#include <algorithm>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

void drop_unit_mul(Rewriter& rewriter, ir::OpId id) {
  const ir::Op op = rewriter.op(id);
  if (op.kind != ir::OpKind::mul) return;
  const bool is_second = rewriter.tensor(op.inputs[0]).is_constant();
  const ir::TensorId from = op.inputs[is_second ? 1 : 0], to = op.outputs[0];
  const ir::Tensor &source = rewriter.tensor(from), &result = rewriter.tensor(to);
  if (!is_computed_byte(source) || !is_computed_byte(result) || source.shape != result.shape ||
      rewriter.tensor(op.inputs[is_second ? 0 : 1]).shape.elems() != 1)
    return;
  const auto on_cpu = [&](ir::OpId one) { return rewriter.level(one) == Level::refused; };
  if (rewriter.producer(from) < 0 || rewriter.is_output(to) || rewriter.readers(to).empty() || on_cpu(id) ||
      !on_cpu(rewriter.producer(from)) || !std::ranges::all_of(rewriter.readers(to), on_cpu) ||
      !rewriter.keeps_bytes({op}, from, to))
    return;
  rewriter.replace({.ops = {id},
                    .kept = id,
                    .by = {rewriter.reshape(from, to)},
                    .text = "MUL changes no byte, between operations of the CPU",
                    .must_help = false,
                    .on_cpu = 1});
}

}  // namespace skillet::passes
