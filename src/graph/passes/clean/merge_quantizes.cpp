// Removes a QUANTIZE that changes nothing or undoes a DEQUANTIZE, and merges it with a lossless QUANTIZE before it. Ops
// that move the floats of a DEQUANTIZE move its bytes instead.
// Converters put QUANTIZE at the uint8 inputs and outputs of int8 networks.
#include <utility>

#include "graph/ir/sign.h"
#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

void merge(Rewriter& rewriter, ir::OpId id) {
  const ir::Op op = rewriter.op(id);
  if (op.kind != ir::OpKind::quantize) return;
  const ir::TensorId from = op.inputs[0], to = op.outputs[0];
  if (!ir::is_8bit(rewriter.tensor(to).dtype) || rewriter.tensor(to).quant.per_channel()) return;
  if (is_computed_byte(rewriter.tensor(from)) && same_meaning(rewriter.tensor(from), rewriter.tensor(to)) &&
      rewriter.bypass({id}, from, "QUANTIZE to the same scale is nothing"))
    return;
  const ir::OpId producer = rewriter.only_producer(from);
  if (producer < 0) return;
  const ir::Op first = rewriter.op(producer);
  if (first.kind != ir::OpKind::dequantize && first.kind != ir::OpKind::quantize) return;
  const ir::TensorId source = first.inputs[0];
  if (!is_computed_byte(rewriter.tensor(source))) return;
  const bool lossless =
      first.kind == ir::OpKind::dequantize || ir::only_changes_sign(rewriter.tensor(source), rewriter.tensor(from));
  if (!lossless) return;
  if (same_meaning(rewriter.tensor(source), rewriter.tensor(to)) && rewriter.keeps_bytes({first, op}, source, to) &&
      rewriter.bypass({producer, id}, source, fmt::format("{} and QUANTIZE cancel out", ir::op_name(first))))
    return;
  if (first.kind != ir::OpKind::quantize) return;  // float rounding differs
  ir::Op merged = op;
  merged.inputs = {source};
  rewriter.replace(
      {.ops = {producer, id}, .kept = id, .by = {merged}, .text = "two QUANTIZE become one", .must_help = false});
}

void move_bytes(Rewriter& rewriter, ir::OpId id) {
  ir::Op op = rewriter.op(id);
  if (op.kind != ir::OpKind::depth_to_space && op.kind != ir::OpKind::space_to_depth && op.kind != ir::OpKind::gather)
    return;
  const ir::OpId producer = rewriter.only_producer(op.inputs[0]);
  if (producer < 0 || rewriter.op(producer).kind != ir::OpKind::dequantize) return;
  ir::Op back = rewriter.op(producer);
  const ir::Tensor bytes = rewriter.tensor(back.inputs[0]);
  if (!is_computed_byte(bytes)) return;
  op.inputs[0] = back.inputs[0];
  back.outputs = op.outputs;
  back.inputs = op.outputs = {rewriter.add_like(bytes, "/moved", rewriter.tensor(op.outputs[0]).shape)};
  std::string text = fmt::format("{} moves bytes, before DEQUANTIZE", ir::op_name(op));
  rewriter.replace({.ops = {producer, id},
                    .kept = id,
                    .by = {std::move(op), std::move(back)},
                    .text = std::move(text),
                    .must_help = false});
}

}  // namespace

void merge_quantizes(Rewriter& rewriter, ir::OpId id) {
  merge(rewriter, id);
  move_bytes(rewriter, id);
}

}  // namespace skillet::passes
