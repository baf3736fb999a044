// Checks that the requested NPU did its work: an operation planned for it that the CPU computed after a failure counts
// as missing. Called by `skillet run`, `eval` and `bench`. Must not know: how a part fails.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compile/report.h"
#include "runtime/session.h"

namespace skillet::tools {

struct NpuUse {
  size_t npu_ops = 0, cpu_ops = 0;
  size_t fallback_ops = 0;  // of cpu_ops: were planned for the NPU
  compile::ModelUse model;  // the same by operation of the model itself
  std::string why;          // reason of the first failure; empty: none
  std::vector<bool> works;  // by op: jobs of the NPU compute it
};
NpuUse npu_use(const runtime::Session& session);

// Adds "model_ops", "model_npu_ops", "model_part_ops" and "model_folded_ops"; the second form also "npu_ops", "cpu_ops"
// and "fallback_ops", which count the operations that run.
void add_json(nlohmann::json& out, const compile::ModelUse& use);
void add_json(nlohmann::json& out, const NpuUse& use);
// Error: `device` names an NPU, and the CPU did some of its work.
Result<void> check_npu_use(const std::string& device, const NpuUse& use);

}  // namespace skillet::tools
