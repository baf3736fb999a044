// How a model runs on a device: its share on the NPU with `skillet run` and with the delegate, and its predicted time.
// Called by the verbs that write new model files, for the old and the new file.
// Must not know: the changes.
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

// With `skillet run`, as check reports it, and with the delegate's defaults.
struct Placed {
  compile::ModelUse use;
  size_t left = 0, npu_parts = 0;  // operations after the passes that the CPU runs
  uint64_t macs = 0, npu_macs = 0;
  std::optional<ProgramTiming> time;
  size_t claimed = 0, host_ops = 0;  // by the delegate
  double claimed_macs = 0;           // share of the model's
  bool has_macs = false;
};

Result<Placed> place(const runtime::Target& target, const ir::Graph& graph, runtime::SessionOptions options);
nlohmann::json to_json(const Placed& placed);

// Adds rows: name, before, after. `host`: the program that claims operations; empty: none.
void add_rows(TextTable& table, const Placed& before, const Placed& after, std::string_view host = "the delegate");

// A line that says why the delegate claims other operations than `skillet run` takes; empty if it claims as many.
std::string why_claims_differ(const Placed& before, const Placed& after);

}  // namespace skillet::tools
