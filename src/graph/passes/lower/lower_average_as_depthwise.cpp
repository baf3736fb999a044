// AVERAGE_POOL_2D without padding, and MEAN and SUM over rows, columns or both, become a depthwise convolution, if its
// rounding gives the same byte, or one within a step, for every possible sum.
#include <algorithm>
#include <utility>

#include "graph/passes/lower/average.h"
#include "graph/passes/lower/lower_conv1d.h"
#include "graph/passes/lower/strides.h"

namespace skillet::passes {
namespace {

// The convolution itself, or one over blocks of an image of one row or column; empty if it cannot be made.
std::vector<ir::Op> made(Rewriter& rewriter, const Average& average, const Weights& weights, bool by_blocks) {
  const ir::Tensor from = rewriter.tensor(average.from), to = rewriter.tensor(average.to);
  const int32_t channels = from.shape[3];
  ir::Op op{.kind = ir::OpKind::depthwise_conv_2d, .attrs = average.attrs, .inputs = {average.from}};
  add_weights(rewriter, average, weights, {1, average.rows, average.columns, channels}, channels, op);
  op.outputs = {average.to};
  if (to.shape.rank() != 4)
    op.outputs = {rewriter.add_like(
        to, "/image",
        {from.shape[0], from.shape[1] - average.rows + 1, from.shape[2] - average.columns + 1, channels})};
  const ir::TensorId result = op.outputs[0];
  std::vector<ir::Op> ops;
  if (by_blocks)
    ops = in_blocks(rewriter, op, 1);
  else
    ops = {std::move(op)};
  if (!ops.empty() && to.shape.rank() != 4) ops.push_back(rewriter.reshape(result, average.to));
  return ops;
}

// Strides that give the same windows: equal ones first, which chips support best.
std::vector<ir::ConvAttrs> strides_of(const Rewriter& rewriter, const Average& average) {
  std::vector<ir::ConvAttrs> out =
      with_other_strides(average.attrs, rewriter.tensor(average.from).shape, average.rows, average.columns);
  std::ranges::reverse(out);
  out.push_back(average.attrs);
  return out;
}

}  // namespace

void lower_average_as_depthwise(Rewriter& rewriter, ir::OpId id) {
  auto average = average_of(rewriter, rewriter.op(id));
  if (!average || rewriter.level(id) == Level::proven) return;
  const ir::Shape from = rewriter.tensor(average->from).shape;
  if (average->pixels() * from[3] * from[3] > kDenseBytesMax) return;
  const auto weights = weights_of(rewriter, *average);
  if (!weights) return;
  const std::string text =
      fmt::format("{} becomes DEPTHWISE_CONV_2D {}x{}", ir::op_name(rewriter.op(id)), average->rows, average->columns);
  const bool is_row = from[1] == 1 || from[2] == 1;
  for (const bool by_blocks : {false, true}) {
    for (const ir::ConvAttrs& attrs : strides_of(rewriter, *average)) {
      if (by_blocks && (!is_row || (attrs.stride_h == 1 && attrs.stride_w == 1))) continue;
      average->attrs = attrs;
      std::vector<ir::Op> ops = made(rewriter, *average, *weights, by_blocks);
      if (ops.empty()) {
        rewriter.drop();
      } else if (rewriter.replace(id, std::move(ops), by_blocks ? text + " of blocks" : text, weights->off)) {
        return;
      }
    }
  }
}

}  // namespace skillet::passes
