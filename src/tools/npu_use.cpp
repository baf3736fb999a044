#include "tools/npu_use.h"

#include <cstdlib>
#include <string_view>

namespace skillet::tools {

NpuUse npu_use(const runtime::Session& session) {
  NpuUse out;
  for (const runtime::PartReport& part : session.report().parts) {
    const bool fell_back = !part.fallback.empty();
    (part.on_npu && !fell_back ? out.npu_ops : out.cpu_ops) += part.ops.size();
    if (!part.on_npu || !fell_back) continue;
    out.fallback_ops += part.ops.size();
    if (out.why.empty()) out.why = part.fallback;
  }
  return out;
}

std::string device_meant(const std::string& device) {
  const char* const required = std::getenv("SKILLET_REQUIRE_NPU");
  return device == "auto" && required != nullptr && std::string_view(required) == "1" ? "npu" : device;
}

Result<void> check_npu_use(const std::string& device, const NpuUse& use) {
  if (device == "auto" || use.fallback_ops == 0) return {};
  return error(ErrorCode::device,
               "--device {}: {} of {} operations of the NPU were computed by the CPU after a failure: {}", device,
               use.fallback_ops, use.npu_ops + use.fallback_ops, use.why);
}

}  // namespace skillet::tools
