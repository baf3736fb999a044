// What becomes of a model on a device: how much of it the NPU takes, by `skillet run` and by the delegate, and how long
// the whole is predicted to take. Called by the verbs that write models anew, before and after.
// Must not know: what was changed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "compile/report.h"
#include "graph/ir/graph.h"
#include "runtime/session.h"
#include "tools/show/text_table.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {

// With `skillet run`, as check says it, and with the delegate's defaults.
struct Placed {
  compile::ModelUse use;
  size_t left = 0, npu_parts = 0;  // left to the CPU, of the operations after the passes
  uint64_t macs = 0, npu_macs = 0;
  std::optional<ProgramTiming> time;
  size_t claimed = 0, host_ops = 0;  // by the delegate
  double claimed_macs = 0;           // share of the model's
  bool has_macs = false;
};

Result<Placed> place(const runtime::Target& target, const ir::Graph& graph, runtime::SessionOptions options);
nlohmann::json to_json(const Placed& placed);

// Rows: what it is, before, after. `host`: what claims operations; empty: nobody says.
void add_rows(TextTable& table, const Placed& before, const Placed& after, std::string_view host = "the delegate");

}  // namespace skillet::tools
