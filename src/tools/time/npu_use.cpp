#include "tools/time/npu_use.h"

#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/log.h"
#include "base/parse_bool.h"

namespace skillet::tools {

size_t jobs_of(const runtime::Session& session, size_t part) {
  size_t jobs = 0;
  for (const npu::Program* program : session.programs(part)) jobs += program->jobs.size();
  return jobs;
}

NpuUse npu_use(const runtime::Session& session) {
  NpuUse out;
  std::vector<bool> on_npu(session.graph().ops.size());
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const runtime::PartReport& part = session.report().parts[i];
    const bool fell_back = !part.fallback.empty(), works = part.on_npu && !fell_back && jobs_of(session, i) > 0;
    (works ? out.npu_ops : out.cpu_ops) += part.ops.size();
    for (const ir::OpId op : part.ops) on_npu[static_cast<size_t>(op)] = works;
    if (!part.on_npu || !fell_back) continue;
    out.fallback_ops += part.ops.size();
    if (out.why.empty()) out.why = part.fallback;
  }
  const runtime::Report& report = session.report();
  out.model = compile::model_use(session.graph(), report.rewrites, report.model_ops, on_npu);
  out.works = std::move(on_npu);
  return out;
}

std::string print_use(const compile::ModelUse& use) {
  std::string more;
  if (use.part_ops != 0) more = fmt::format("{} more in part", use.part_ops);
  if (use.folded_ops != 0) more += fmt::format("{}{} folded", more.empty() ? "" : ", ", use.folded_ops);
  return fmt::format("{} of {} operations{}", use.npu_ops, use.ops, more.empty() ? "" : " (" + more + ")");
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
