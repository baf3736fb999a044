#include "tools/time/npu_use.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace skillet::tools {

NpuUse npu_use(const runtime::Session& session) {
  NpuUse out{.model = runtime::model_use(session), .works = runtime::works_on_npu(session)};
  out.npu_ops = static_cast<size_t>(std::ranges::count(out.works, true));
  out.cpu_ops = out.works.size() - out.npu_ops;
  for (const runtime::PartReport& part : session.report().parts) {
    if (!part.on_npu || part.fallback.empty()) continue;
    out.fallback_ops += part.ops.size();
    if (out.why.empty()) out.why = part.fallback;
  }
  return out;
}

void add_json(nlohmann::json& out, const compile::ModelUse& use) {
  out["model_ops"] = use.ops;
  out["model_npu_ops"] = use.npu_ops;
  out["model_part_ops"] = use.part_ops;
  out["model_folded_ops"] = use.folded_ops;
}

void add_json(nlohmann::json& out, const NpuUse& use) {
  out["npu_ops"] = use.npu_ops;
  out["cpu_ops"] = use.cpu_ops;
  out["fallback_ops"] = use.fallback_ops;
  add_json(out, use.model);
}

Result<void> check_npu_use(const std::string& device, const NpuUse& use) {
  if (device == "auto" || use.fallback_ops == 0) return {};
  return error(ErrorCode::device, "--device {}: the CPU computed {} of {} operations of the NPU after a failure: {}",
               device, use.fallback_ops, use.npu_ops + use.fallback_ops, use.why);
}

}  // namespace skillet::tools
