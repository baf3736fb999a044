// PAD by more than the chip does at once, as several: what is added is the same, whoever adds it.
#include <algorithm>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

constexpr int32_t kStepsMax = 8;

int32_t largest(const std::vector<int32_t>& amounts) { return amounts.empty() ? 0 : std::ranges::max(amounts); }

// PADs that add at most `step` on each side.
std::vector<ir::Op> steps_of(Rewriter& rewriter, const ir::Op& old, std::vector<int32_t> left, int32_t step) {
  std::vector<ir::Op> ops;
  for (ir::TensorId from = old.inputs[0]; largest(left) > 0;) {
    std::vector<int32_t> now;
    for (int32_t& amount : left) {
      now.push_back(std::min(amount, step));
      amount -= now.back();
    }
    const ir::Tensor before = rewriter.tensor(from);
    Bytes bytes(now.size() * 4);
    for (size_t i = 0; i < now.size(); ++i) store_le(bytes.data() + 4 * i, now[i]);
    const ir::TensorId amounts =
        rewriter.add_constant(before.name + "/margins", ir::DType::int32, {before.shape.rank(), 2}, std::move(bytes));
    ir::TensorId to = old.outputs[0];
    if (largest(left) > 0) {
      ir::Tensor more = before;
      more.name += "/padded";
      for (size_t i = 0; i < more.shape.dims.size(); ++i) more.shape.dims[i] += now[2 * i] + now[2 * i + 1];
      to = rewriter.add(std::move(more));
    }
    ops.push_back({.kind = ir::OpKind::pad, .inputs = {from, amounts}, .outputs = {to}});
    from = to;
  }
  return ops;
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::pad) return;
  const ir::Tensor in = rewriter.tensor(old.inputs[0]), out = rewriter.tensor(old.outputs[0]);
  const ir::Tensor& margins = rewriter.tensor(old.inputs[1]);
  if (!is_computed_byte(in) || !is_computed_byte(out) || !same_meaning(in, out) || !margins.is_constant() ||
      margins.dtype != ir::DType::int32 || rewriter.level(id) == Level::proven)
    return;
  const std::vector<int32_t> amounts = margins.values<int32_t>();
  const int32_t most = largest(amounts);
  if (std::ssize(amounts) != 2 * in.shape.rank() || std::ranges::min(amounts) < 0) return;
  for (int32_t count = 2; count <= std::min(kStepsMax, most); ++count) {
    const int32_t step = (most - 1) / count + 1;
    std::vector<ir::Op> ops = steps_of(rewriter, old, amounts, step);
    std::string text = fmt::format("PAD by {} becomes {} of at most {}", most, ops.size(), step);
    if (rewriter.replace({.ops = {id}, .kept = id, .by = std::move(ops), .text = std::move(text)})) return;
  }
}

}  // namespace

Result<void> split_pad(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "split_pad");
  rewriter.for_each_op([&](ir::OpId id) { rewrite(rewriter, id); });
  return {};
}

}  // namespace skillet::passes
