// RELU, RELU6 or RELU_N1_TO_1 fused into the op before, if that can clamp its output to the same range.
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

std::optional<ir::Activation> activation_of(ir::OpKind kind) {
  switch (kind) {
    case ir::OpKind::relu: return ir::Activation::relu;
    case ir::OpKind::relu6: return ir::Activation::relu6;
    case ir::OpKind::relu_n1_to_1: return ir::Activation::relu_n1_to_1;
    default: return std::nullopt;
  }
}

// The fused activation of an op; null: the op has none.
ir::Activation* fused(ir::Op& op) {
  if (op.kind == ir::OpKind::transpose_conv || op.kind == ir::OpKind::concatenation) return nullptr;
  if (auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs)) return &conv->activation;
  if (auto* pool = std::get_if<ir::PoolAttrs>(&op.attrs)) return &pool->activation;
  if (auto* dense = std::get_if<ir::FullyConnectedAttrs>(&op.attrs)) return &dense->activation;
  if (op.kind != ir::OpKind::add && op.kind != ir::OpKind::sub && op.kind != ir::OpKind::mul) return nullptr;
  return &std::get<ir::ActivationAttrs>(op.attrs).activation;
}

}  // namespace

void fuse_activations(Rewriter& rewriter, ir::OpId id) {
  const ir::Op& relu = rewriter.op(id);
  const auto activation = activation_of(relu.kind);
  if (!activation) return;
  const ir::TensorId between = relu.inputs[0], result = relu.outputs[0];
  const ir::OpId producer = rewriter.only_producer(between);
  if (producer < 0 || !is_computed_byte(rewriter.tensor(between)) ||
      !same_meaning(rewriter.tensor(between), rewriter.tensor(result)))
    return;
  ir::Op op = rewriter.op(producer);
  ir::Activation* own = fused(op);
  if (own == nullptr || *own != ir::Activation::none) return;
  *own = *activation;
  op.outputs = {result};
  std::string text = fmt::format("{} takes {} in", ir::op_name(op), ir::op_name(relu));
  rewriter.replace(
      {.ops = {producer, id}, .kept = producer, .by = {std::move(op)}, .text = std::move(text), .must_help = false});
}

}  // namespace skillet::passes
