#include "tools/delegate_claims.h"

#include <algorithm>

#include "compile/report.h"
#include "passes/passes.h"

namespace skillet::tools {
namespace {

// An operation stays with the host when any of what passes made of it does not go to the NPU.
void refuse(const compile::Compiled& compiled, std::vector<std::string>& why_not) {
  for (size_t i = 0; i < compiled.ops.size(); ++i) {
    const int32_t source = compiled.graph.ops[i].source_index;
    if (compiled.ops[i].on_npu || source < 0 || static_cast<size_t>(source) >= why_not.size()) continue;
    std::string& why = why_not[static_cast<size_t>(source)];
    if (why.empty()) why = compiled.ops[i].reason.empty() ? "not for the NPU" : compiled.ops[i].reason;
  }
}

// What passes took in shares the place of what computes it; what is gone altogether is the host's.
void refuse_gone(const compile::Compiled& planned, std::vector<std::string>& why_not) {
  std::vector<bool> is_left(why_not.size());
  const auto is_op = [&](int32_t op) { return op >= 0 && static_cast<size_t>(op) < why_not.size(); };
  for (const ir::Op& op : planned.graph.ops)
    if (is_op(op.source_index)) is_left[static_cast<size_t>(op.source_index)] = true;
  for (const auto& [gone, now] : compile::absorbed_by(planned.rewrites)) {
    if (!is_op(gone) || !is_op(now) || is_left[static_cast<size_t>(gone)]) continue;
    is_left[static_cast<size_t>(gone)] = true;
    why_not[static_cast<size_t>(gone)] = why_not[static_cast<size_t>(now)];
  }
  for (size_t i = 0; i < why_not.size(); ++i)
    if (!is_left[i]) why_not[i] = "nothing reads what it computes";
}

}  // namespace

// As the delegate does it with its host: what is dropped changes how the rest is divided, until nothing is dropped.
Result<DelegateClaims> delegate_claims(const runtime::Target& target, const ir::Graph& graph,
                                       runtime::SessionOptions session) {
  DelegateClaims out{.why_not = std::vector<std::string>(graph.ops.size())};
  const uint64_t min_macs_per_byte = session.min_macs_per_byte;
  session.min_macs_per_byte = 0;
  SK_TRY_ASSIGN(const compile::Compiled planned, runtime::plan_for(target, graph, session));
  refuse(planned, out.why_not);
  refuse_gone(planned, out.why_not);
  session.min_macs_per_byte = min_macs_per_byte;
  std::ptrdiff_t claimed = -1;
  while (claimed != std::ranges::count(out.why_not, "")) {
    claimed = std::ranges::count(out.why_not, "");
    std::vector<driver::Support> support;
    for (const std::string& why : out.why_not)
      support.push_back(why.empty() ? driver::Support::yes() : driver::Support::no(driver::Remedy::none, "{}", why));
    out.partitions = 0;
    for (const passes::Partition& part : passes::partition(graph, support)) {
      if (!part.on_npu) continue;
      ++out.partitions;
      SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, part.graph, session));
      refuse(compiled, out.why_not);
    }
  }
  return out;
}

}  // namespace skillet::tools
