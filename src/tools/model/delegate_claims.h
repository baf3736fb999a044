// Finds the operations that a program with the TensorFlow Lite delegate gives to the NPU: whole operations of the
// model, in partitions that are profitable to offload.
// Called by `skillet check --delegate`.
// Must not know: the delegate's interface to its host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "npu/support.h"
#include "runtime/session.h"

namespace skillet::tools {

struct DelegateClaims {
  // By operation of the model. why_not is empty if it is claimed.
  std::vector<std::string> why_not;
  std::vector<npu::Remedy> remedies;
  std::vector<bool> is_folded;  // claimed, but only computes shapes, so that nothing computes it
  // If our CPU kernels compute a claimed operation, because the NPU reads its result: why the NPU does not.
  std::vector<std::string> on_cpu;
  size_t partitions = 0;

  // What the delegate's own CPU kernels compute for the NPU is not on the NPU, and the delegate does not count it.
  bool is_on_npu(size_t op) const { return why_not[op].empty() && on_cpu[op].empty(); }
};

// True if nothing can be predicted, because sizes are dynamic (compile::kNothingPredicted).
bool is_too_free(const ir::Graph& graph, const runtime::SessionOptions& session);

// By op of the model: why the delegate leaves it to the host without checking the NPU (ImportOptions::newer_fields).
using LeftToHost = std::map<ir::OpId, std::string>;

// Operations that the delegate takes with `session`, and its own defaults for options that are not set.
Result<DelegateClaims> delegate_claims(const runtime::Target& target, const ir::Graph& model,
                                       runtime::SessionOptions session, const LeftToHost& left = {});

}  // namespace skillet::tools
