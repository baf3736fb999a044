// MEAN, SUM, REDUCE_MAX or REDUCE_MIN over the pixels of a sequence (the second of three dimensions) becomes the same
// op over an image of one row, which chips and other passes support.
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

bool is_sum(const ir::Op& op) { return op.kind == ir::OpKind::mean || op.kind == ir::OpKind::sum; }

bool is_of_row(const Rewriter& rewriter, const ir::Op& op) {
  const bool is_extreme = op.kind == ir::OpKind::reduce_max || op.kind == ir::OpKind::reduce_min;
  if ((!is_sum(op) && !is_extreme) || op.inputs.size() != 2) return false;
  const ir::Tensor &from = rewriter.tensor(op.inputs[0]), &axes = rewriter.tensor(op.inputs[1]);
  if (!is_computed_byte(from) || from.shape.rank() != 3 || from.shape[0] != 1 || from.shape.elems() < 1 ||
      !axes.is_constant() || axes.dtype != ir::DType::int32)
    return false;
  const std::vector<int32_t> values = axes.values<int32_t>();
  return values.size() == 1 && (values[0] == 1 || values[0] == -2);
}

}  // namespace

void lower_sequence_mean(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (!is_of_row(rewriter, old) || rewriter.level(id) == Level::proven) return;
  const ir::Tensor& row = rewriter.tensor(old.inputs[0]);
  const ir::TensorId image = rewriter.add_like(row, "/row", {1, 1, row.shape[1], row.shape[2]});
  std::vector<ir::Op> ops = {rewriter.reshape(old.inputs[0], image)};
  ir::Op mean{.kind = old.kind, .attrs = ir::ReduceAttrs{.keep_dims = false}};
  mean.inputs = {image, rewriter.add_ints(rewriter.tensor(old.outputs[0]).name + "/axes", {1, 2})};
  mean.outputs = {old.outputs[0]};
  const ir::Tensor flat = rewriter.tensor(old.outputs[0]);
  const bool is_flat = flat.shape.rank() == 2;
  if (!is_flat) mean.outputs = {rewriter.add_like(flat, "/flat", {1, rewriter.tensor(image).shape[3]})};
  const ir::TensorId result = mean.outputs[0];
  ops.push_back(std::move(mean));
  if (!is_flat) ops.push_back(rewriter.reshape(result, old.outputs[0]));
  rewriter.replace({.ops = {id},
                    .kept = id,
                    .by = std::move(ops),
                    .text = fmt::format("{} of a sequence becomes one of a row", ir::op_name(old)),
                    .must_help = !is_sum(old)});  // other passes finish sums
}

}  // namespace skillet::passes
