// What a program that loads the TensorFlow Lite delegate gives to the NPU: whole operations of the model, in partitions
// that are profitable to offload.
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
  // By operation of the model. why_not: empty: it is claimed.
  std::vector<std::string> why_not;
  std::vector<npu::Remedy> remedies;
  std::vector<bool> is_folded;  // claimed, but nothing computes it: it only computes shapes
  // Where it is claimed though our CPU kernels compute it, because the NPU reads what it makes: why not the NPU.
  std::vector<std::string> on_cpu;
  size_t partitions = 0;
};

// Nothing is predicted of its sizes then (compile::kNothingPredicted).
bool is_too_free(const ir::Graph& graph, const runtime::SessionOptions& session);

// By op of the model: why the delegate leaves it to the host before any NPU is asked (ImportOptions::newer_fields).
using LeftToHost = std::map<ir::OpId, std::string>;

// What the delegate takes where `session` says nothing.
Result<DelegateClaims> delegate_claims(const runtime::Target& target, const ir::Graph& model,
                                       runtime::SessionOptions session, const LeftToHost& left = {});

}  // namespace skillet::tools
