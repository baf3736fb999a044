// FULLY_CONNECTED after a RESHAPE that flattens an image reads the image itself: the order of elements is the same.
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

void flatten_in_dense(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::fully_connected || old.as<ir::FullyConnectedAttrs>().keep_num_dims) return;
  const ir::OpId reshape = rewriter.only_producer(old.inputs[0]);
  if (reshape < 0 || rewriter.op(reshape).kind != ir::OpKind::reshape) return;
  const ir::TensorId image = rewriter.op(reshape).inputs[0];
  const ir::Tensor &from = rewriter.tensor(image), &row = rewriter.tensor(old.inputs[0]);
  const ir::Shape& filter = rewriter.tensor(old.inputs[1]).shape;
  const bool is_one = filter.rank() == 2 && filter[1] == row.shape.back(0) && from.shape.rank() == 4 &&
                      from.shape[0] == 1 && row.shape.rank() == 2 && row.shape[0] == 1;
  if (!is_one || !is_computed_byte(from) || !same_meaning(from, row)) return;
  ir::Op op = old;
  op.inputs[0] = image;
  std::string text = fmt::format("RESHAPE into {}", ir::op_name(old));
  rewriter.replace({.ops = {reshape, id}, .kept = id, .by = {std::move(op)}, .text = std::move(text)});
}

}  // namespace skillet::passes
