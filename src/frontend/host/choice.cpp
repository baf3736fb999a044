#include "frontend/host/choice.h"

#include <set>

#include "compile/report.h"

namespace skillet::host {

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = options.session;
  out.allow_fallback = !options.strict;
  // What goes to the NPU is chosen when partitions are proposed; one that the host has handed over goes there.
  out.partition = compile::PartitionBy::all;
  return out;
}

Planned planned_for(const compile::Compiled& planned) {
  Planned out;
  std::set<int> left;
  for (size_t i = 0; i < planned.ops.size(); ++i) {
    const int node = planned.graph.ops[i].source_index;
    left.insert(node);
    if (!planned.ops[i].on_npu) out.refusals.push_back({node, planned.ops[i].reason});
  }
  for (const auto& [gone, now] : compile::absorbed_by(planned.rewrites)) {
    if (!left.insert(gone).second) continue;  // others have its number
    for (size_t i = 0; i < planned.ops.size(); ++i) {
      if (planned.graph.ops[i].source_index == now && !planned.ops[i].on_npu)
        out.refusals.push_back({gone, planned.ops[i].reason});
    }
  }
  out.left.assign(left.begin(), left.end());
  return out;
}

std::vector<Refusal> refusals_of(const compile::Compiled& compiled, std::span<const int> nodes) {
  std::vector<Refusal> out;
  for (size_t i = 0; i < compiled.ops.size(); ++i) {
    const compile::OpPlace& place = compiled.ops[i];
    if (place.on_npu) continue;
    const bool is_choice = place.remedy == npu::Remedy::take_all;
    out.push_back(
        {compiled.graph.ops[i].source_index, is_choice ? place.reason + std::string(kTakenByAll) : place.reason});
  }
  if (out.empty() && compile::npu_parts(compiled) == 0)
    for (const int node : nodes) out.push_back({node, compile::kNoJob});
  return out;
}

}  // namespace skillet::host
