// AVERAGE_POOL_2D without padding and MEAN over rows and columns as a depthwise convolution, where its rounding gives
// the same byte, or one within a step, for every sum that there can be.
#include <utility>

#include "graph/passes/lower/average.h"

namespace skillet::passes {
namespace {

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const auto average = average_of(rewriter, rewriter.op(id));
  if (!average || rewriter.level(id) == Level::proven) return;
  const ir::Tensor from = rewriter.tensor(average->from), to = rewriter.tensor(average->to);
  const int32_t channels = from.shape[3];
  if (average->pixels() * channels * channels > kDenseBytesMax) return;
  const auto weights = weights_of(rewriter, *average);
  if (!weights) return;
  ir::Op op{.kind = ir::OpKind::depthwise_conv_2d, .attrs = average->attrs, .inputs = {average->from}};
  add_weights(rewriter, *average, *weights, {1, average->rows, average->columns, channels}, channels, op);
  op.outputs = {average->to};
  std::vector<ir::Op> ops = {std::move(op)};
  if (to.shape.rank() != 4) {
    ir::Tensor image = to;
    image.name += "/image";
    image.shape = {from.shape[0], 1, 1, channels};
    ops[0].outputs[0] = rewriter.add(std::move(image));
    ops.push_back(rewriter.reshape(ops[0].outputs[0], average->to));
  }
  std::string text =
      fmt::format("{} becomes DEPTHWISE_CONV_2D {}x{}", ir::op_name(rewriter.op(id)), average->rows, average->columns);
  rewriter.replace({.ops = {id}, .kept = id, .by = std::move(ops), .text = std::move(text), .off = weights->off});
}

}  // namespace

Result<void> average_to_depthwise(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "average_to_depthwise");
  rewriter.for_each_op([&](ir::OpId id) { rewrite(rewriter, id); });
  return {};
}

}  // namespace skillet::passes
