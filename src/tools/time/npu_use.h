// Whether an NPU that was asked for did its work: an operation that was planned for it and that the CPU computed after
// a failure is not what was asked for. Called by `skillet run`, `eval` and `bench`. Must not know: how a part fails.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compile/report.h"
#include "runtime/session.h"

namespace skillet::tools {

struct NpuUse {
  size_t npu_ops = 0, cpu_ops = 0;
  size_t fallback_ops = 0;  // of cpu_ops: planned for the NPU
  compile::ModelUse model;  // what was computed where, by operation of the model itself
  std::string why;          // the first failure; empty: none
  std::vector<bool> works;  // by op: jobs of the NPU compute it
};
NpuUse npu_use(const runtime::Session& session);

// Adds "model_ops", "model_npu_ops", "model_part_ops" and "model_folded_ops"; the second form also "npu_ops", "cpu_ops"
// and "fallback_ops", which are of the operations that run.
void add_json(nlohmann::json& out, const compile::ModelUse& use);
void add_json(nlohmann::json& out, const NpuUse& use);
// Error: `device` names an NPU, and the CPU did some of its work.
Result<void> check_npu_use(const std::string& device, const NpuUse& use);

}  // namespace skillet::tools
