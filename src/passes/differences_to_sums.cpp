// SUB as ADD of the negated, MAXIMUM and MINIMUM as a sum with a difference that ends at zero: max(a, b) is
// b + max(a - b, 0). All pairs of bytes are tried with the CPU kernels.
#include <algorithm>
#include <utility>

#include "passes/pointwise.h"

namespace skillet::passes {
namespace {

// -x has the zero point at as many steps from the other end.
ir::Tensor negated(const ir::Tensor& one) {
  ir::Tensor out = one;
  out.name += "/negated";
  out.quant.zero_points[0] = (one.dtype == ir::DType::int8 ? -1 : 255) - one.quant.zero_point();
  return out;
}

ir::Op sum_of(ir::OpKind kind, ir::TensorId a, ir::TensorId b, ir::TensorId to) {
  return {.kind = kind, .attrs = ir::ActivationAttrs{}, .inputs = {a, b}, .outputs = {to}};
}

// a - b in `to`; by ADD: of the negated.
std::vector<ir::Op> difference(Rewriter& rewriter, bool by_add, ir::TensorId a, ir::TensorId b, ir::TensorId to) {
  if (!by_add) return {sum_of(ir::OpKind::sub, a, b, to)};
  const ir::TensorId minus = rewriter.add(negated(rewriter.tensor(b)));
  auto negation = pointwise(rewriter, b, minus, ones(rewriter.tensor(b).shape.back(0), -1));
  if (!negation) return {};
  return {std::move(*negation), sum_of(ir::OpKind::add, a, minus, to)};
}

std::vector<ir::Op> as_sums(Rewriter& rewriter, const ir::Op& old, bool by_add) {
  const ir::TensorId a = old.inputs[0], b = old.inputs[1], to = old.outputs[0];
  if (old.kind == ir::OpKind::sub) {
    if (!by_add) return {};
    std::vector<ir::Op> ops = difference(rewriter, true, a, b, to);
    if (!ops.empty()) ops.back().attrs = old.attrs;
    return ops;
  }
  const ir::TensorId more =
      rewriter.add(ending_at_zero(rewriter.tensor(to), "/difference", old.kind == ir::OpKind::minimum));
  std::vector<ir::Op> ops = difference(rewriter, by_add, a, b, more);
  if (!ops.empty()) ops.push_back(sum_of(ir::OpKind::add, b, more, to));
  return ops;
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const bool picks = old.kind == ir::OpKind::maximum || old.kind == ir::OpKind::minimum;
  if (!picks && old.kind != ir::OpKind::sub) return;
  const ir::TensorId a = old.inputs[0], b = old.inputs[1], to = old.outputs[0];
  const ir::Tensor first = rewriter.tensor(a), second = rewriter.tensor(b), out = rewriter.tensor(to);
  if (a == b || !is_pointwise(first, out, INT32_MAX) || !is_pointwise(second, out, INT32_MAX) ||
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

}  // namespace

Result<void> differences_to_sums(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "differences_to_sums");
  rewriter.for_each_op([&](ir::OpId id) { rewrite(rewriter, id); });
  return {};
}

}  // namespace skillet::passes
