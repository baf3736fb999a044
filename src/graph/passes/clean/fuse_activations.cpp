// RELU, RELU6 or RELU_N1_TO_1 fused into the op before, if that can clamp its output to the same range. A fused one
// that the chip has not is left out if the type of the result ends within the range (calibrated types of clamped
// results do).
#include <optional>
#include <utility>

#include "graph/passes/rewrite.h"
#include "graph/ref/range.h"

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

// True if no byte of `result` is beyond the activation.
bool is_implied(ir::Activation activation, const ir::Tensor& result) {
  const ref::Range all = ref::type_range(result.dtype);
  const auto kept = ref::quantized_range(activation, result);
  return kept && kept->min == all.min && kept->max == all.max;
}

bool fuse(Rewriter& rewriter, ir::OpId id) {
  const ir::Op& relu = rewriter.op(id);
  const auto activation = activation_of(relu.kind);
  if (!activation) return false;
  const ir::TensorId between = relu.inputs[0], result = relu.outputs[0];
  const ir::OpId producer = rewriter.only_producer(between);
  if (producer < 0 || !is_computed_byte(rewriter.tensor(between)) ||
      !same_meaning(rewriter.tensor(between), rewriter.tensor(result)))
    return false;
  ir::Op op = rewriter.op(producer);
  ir::Activation* own = fused(op);
  if (own == nullptr || *own != ir::Activation::none) return false;
  *own = *activation;
  op.outputs = {result};
  std::string text = fmt::format("{} takes {} in", ir::op_name(op), ir::op_name(relu));
  return rewriter.replace(
      {.ops = {producer, id}, .kept = producer, .by = {std::move(op)}, .text = std::move(text), .must_help = false});
}

void leave_out(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  ir::Activation* own = fused(op);
  if (own == nullptr || *own == ir::Activation::none || rewriter.level(id) != Level::refused ||
      !is_computed_byte(rewriter.tensor(op.outputs[0])) || !is_implied(*own, rewriter.tensor(op.outputs[0])))
    return;
  std::string text = fmt::format("the activation {} of {} changes nothing", ir::activation_name(*own), ir::op_name(op));
  *own = ir::Activation::none;
  rewriter.replace(id, {std::move(op)}, std::move(text));
}

}  // namespace

void fuse_activations(Rewriter& rewriter, ir::OpId id) {
  if (!fuse(rewriter, id)) leave_out(rewriter, id);
}

}  // namespace skillet::passes
