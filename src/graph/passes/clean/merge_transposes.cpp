// Merges a TRANSPOSE of a TRANSPOSE, and a TRANSPOSE that moves only dimensions of size 1.
// Converters from channels first to channels last leave both behind.
#include <optional>
#include <utility>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

using Order = std::vector<int32_t>;

bool is_identity(const Order& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

}  // namespace

void merge_transposes(Rewriter& rewriter, ir::OpId id) {
  const ir::Op op = rewriter.op(id);
  const auto order = transpose_order(rewriter, op);
  if (!order) return;
  const ir::TensorId from = op.inputs[0], to = op.outputs[0];
  if (is_identity(*order) && same_meaning(rewriter.tensor(from), rewriter.tensor(to)) &&
      rewriter.bypass({id}, from, "TRANSPOSE moves nothing"))
    return;
  const ir::OpId producer = rewriter.only_producer(from);
  const auto first = producer < 0 ? std::nullopt : transpose_order(rewriter, rewriter.op(producer));
  if (first && first->size() == order->size()) {
    Order both;
    for (const int32_t at : *order) both.push_back((*first)[static_cast<size_t>(at)]);
    const ir::TensorId source = rewriter.op(producer).inputs[0];
    if (is_identity(both) && same_meaning(rewriter.tensor(source), rewriter.tensor(to)) &&
        rewriter.bypass({producer, id}, source, "two TRANSPOSE cancel out"))
      return;
    ir::Op merged = op;
    merged.inputs = {source, rewriter.add_ints(rewriter.tensor(to).name + "/order", both)};
    if (rewriter.replace({.ops = {producer, id},
                          .kept = id,
                          .by = {merged},
                          .text = "two TRANSPOSE become one",
                          .must_help = false}))
      return;
  }
  if (keeps_order(rewriter.tensor(from).shape, *order))
    rewriter.replace(
        {.ops = {id}, .kept = id, .by = {rewriter.reshape(from, to)}, .text = "TRANSPOSE becomes RESHAPE"});
}

}  // namespace skillet::passes
