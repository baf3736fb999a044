// Ops whose inputs are all constant are computed here, by the CPU kernels.
#include <algorithm>
#include <utility>

#include "graph/ir/macs.h"
#include "graph/passes/rewrite.h"
#include "graph/ref/ref.h"

namespace skillet::passes {
namespace {

// Larger ops are computed at run time: compiling must not take as long as running the network.
constexpr int64_t kBytesMax = 1 << 20;
constexpr uint64_t kMacsMax = 1 << 22;

bool is_foldable(const Rewriter& rewriter, ir::OpId id) {
  const ir::Op& op = rewriter.op(id);
  const auto is_constant = [&](ir::TensorId one) { return one == ir::kNoTensor || rewriter.tensor(one).is_constant(); };
  if (op.kind == ir::OpKind::opaque || op.outputs.size() != 1 || op.inputs.empty() ||
      !std::ranges::all_of(op.inputs, is_constant))
    return false;
  const ir::Tensor& result = rewriter.tensor(op.outputs[0]);
  int64_t bytes = result.bytes();
  for (const ir::TensorId one : op.inputs) bytes += one == ir::kNoTensor ? 0 : rewriter.tensor(one).bytes();
  return !result.is_variable && bytes > 0 && result.bytes() > 0 && bytes <= kBytesMax &&
         ir::op_macs(rewriter.graph(), id) <= kMacsMax;
}

}  // namespace

void fold_constants(Rewriter& rewriter, ir::OpId id) {
  if (!is_foldable(rewriter, id)) return;
  const ir::Op op = rewriter.op(id);
  const ir::Graph& graph = rewriter.graph();
  auto computed = ref::compute(graph, id);
  if (!computed.ok()) return;
  ir::Tensor result = graph.tensor(op.outputs[0]);
  result.name += "/constant";
  ir::set_constant(result, std::move(computed->front()));
  if (!rewriter.bypass({id}, rewriter.add(std::move(result)), fmt::format("{} of constants", ir::op_name(op))))
    rewriter.drop();
}

}  // namespace skillet::passes
