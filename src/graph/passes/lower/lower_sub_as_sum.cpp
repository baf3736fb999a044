// SUB becomes ADD of the negated operand; MAXIMUM and MINIMUM become a sum with a difference that ends at zero: max(a,
// b) = b + max(a - b, 0). All pairs of bytes are tested with the CPU kernels.
#include <algorithm>
#include <utility>

#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

std::vector<ir::Op> as_sums(Rewriter& rewriter, const ir::Op& old, bool by_add) {
  const ir::TensorId a = old.inputs[0], b = old.inputs[1], to = old.outputs[0];
  if (old.kind == ir::OpKind::sub) {
    if (!by_add) return {};
    std::vector<ir::Op> ops = difference(rewriter, true, a, b, to);
    if (!ops.empty()) ops.back().attrs = old.attrs;
    return ops;
  }
  return larger(rewriter, by_add, a, b, to, old.kind == ir::OpKind::minimum);
}

}  // namespace

void lower_sub_as_sum(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const bool picks = old.kind == ir::OpKind::maximum || old.kind == ir::OpKind::minimum;
  if (!picks && old.kind != ir::OpKind::sub) return;
  const ir::TensorId a = old.inputs[0], b = old.inputs[1], to = old.outputs[0];
  const ir::Tensor first = rewriter.tensor(a), second = rewriter.tensor(b), out = rewriter.tensor(to);
  if (a == b || !is_pointwise(first, out) || !is_pointwise(second, out) ||
      (picks && (!same_meaning(first, out) || !same_meaning(second, out))) || rewriter.level(id) == Level::proven)
    return;
  for (const bool by_add : {false, true}) {
    std::vector<ir::Op> ops = as_sums(rewriter, old, by_add);
    if (ops.empty() || !rewriter.same_pairs({old}, ops, a, b, to)) {
      rewriter.drop();
      continue;
    }
    std::string text = fmt::format("{} becomes {}", ir::op_name(old),
                                   !picks   ? "ADD of what DEPTHWISE_CONV_2D negates"
                                   : by_add ? "two ADD and the DEPTHWISE_CONV_2D that negates"
                                            : "ADD of SUB");
    if (rewriter.replace({.ops = {id}, .kept = id, .by = std::move(ops), .text = std::move(text)})) return;
  }
}

}  // namespace skillet::passes
