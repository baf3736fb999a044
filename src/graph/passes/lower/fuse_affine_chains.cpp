// A chain of MUL, ADD and SUB with constants by channel, RELU and similar ops, e.g. batch normalisation before a
// convolution, becomes one 1x1 depthwise convolution. It is within a step of the chain's result for every byte.
#include <algorithm>
#include <utility>

#include "graph/passes/lower/affine.h"

namespace skillet::passes {
namespace {

constexpr size_t kOpsMax = 8;  // in a row

// Follows the chain backwards from `id`: each op feeds only the next one.
std::vector<ir::OpId> chain_of(const Rewriter& rewriter, ir::OpId id) {
  std::vector<ir::OpId> out;
  while (id >= 0 && out.size() < kOpsMax) {
    const ir::TensorId from = affine_input(rewriter, rewriter.op(id));
    if (from == ir::kNoTensor) break;
    out.insert(out.begin(), id);
    id = rewriter.only_producer(from);
  }
  return out;
}

std::string names_of(const std::vector<ir::Op>& ops) {
  std::string out;
  for (const ir::Op& op : ops) out += (out.empty() ? "" : ", ") + std::string(ir::op_name(op));
  return out;
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  if (!rewriter.may_be_off()) return;
  std::vector<ir::OpId> chain = chain_of(rewriter, id);
  for (; chain.size() > 1; chain.erase(chain.begin())) {
    std::vector<ir::Op> ops;
    for (const ir::OpId one : chain) ops.push_back(rewriter.op(one));
    std::vector<ir::Op> by = affine_within_a_step(rewriter, ops);
    if (by.empty()) {
      rewriter.drop();
      continue;
    }
    std::string text = fmt::format("{} become {} 1x1", names_of(ops), affine_name(by));
    if (rewriter.replace({.ops = chain, .kept = id, .by = std::move(by), .text = std::move(text), .off = 1})) return;
  }
}

}  // namespace

void fuse_affine_chains(ir::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target, "fuse_affine_chains");
  // Starts at the end of the graph, because a chain is found from its last op.
  if (target.rewrites == nullptr || target.driver == nullptr) return;
  for (auto id = static_cast<ir::OpId>(graph.ops.size()); id-- > 0;) {
    rewrite(rewriter, id);
    id = std::min(id, static_cast<ir::OpId>(graph.ops.size()));
  }
}

}  // namespace skillet::passes
