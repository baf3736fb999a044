#include "tools/time/npu_use.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/log.h"
#include "base/parse_bool.h"

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

std::string device_meant(const std::string& device) {
  const char* const said = environment_variable("SKILLET_REQUIRE_NPU");
  if (device != "auto" || said == nullptr || *said == '\0') return device;
  bool required = true;  // who asks for it in words that we do not know does not want the CPU
  if (!parse_bool(said, required)) log::warning("SKILLET_REQUIRE_NPU={}: must be 1 or 0; taking 1", said);
  return required ? "npu" : device;
}

Result<void> check_npu_use(const std::string& device, const NpuUse& use) {
  if (device == "auto" || use.fallback_ops == 0) return {};
  return error(ErrorCode::device,
               "--device {}: {} of {} operations of the NPU were computed by the CPU after a failure: {}", device,
               use.fallback_ops, use.npu_ops + use.fallback_ops, use.why);
}

}  // namespace skillet::tools
