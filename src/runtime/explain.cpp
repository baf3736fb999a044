#include <algorithm>

#include "runtime/session.h"

namespace skillet::runtime {

std::string explain(const Session& session) {
  const Report& report = session.report();
  const auto on_npu = std::ranges::count_if(report.ops, [](const OpReport& op) { return op.on_npu; });
  std::string out = fmt::format("{} of {} ops on the NPU, {} parts\n", on_npu, report.ops.size(), report.parts.size());
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const PartReport& part = report.parts[i];
    out += fmt::format("part {} on {}, {} ops, prepared in {:.1f} ms\n", i, part.on_npu ? "NPU" : "CPU",
                       part.ops.size(), part.compile_ms + part.load_ms);
    if (!part.fallback.empty()) out += fmt::format("  runs on the CPU: {}\n", part.fallback);
    for (const ir::OpId id : part.ops) {
      const OpReport& op = report.ops[static_cast<size_t>(id)];
      out += fmt::format("  {}", ir::describe_op(session.graph(), id));
      if (!op.reason.empty()) out += fmt::format(": {}{}", op.unproven ? "unproven: " : "", op.reason);
      out += '\n';
    }
  }
  return out;
}

}  // namespace skillet::runtime
