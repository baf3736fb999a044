#include "tools/model/placed.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text.h"
#include "runtime/costs.h"
#include "tools/model/check_chips.h"
#include "tools/model/delegate_claims.h"
#include "tools/show/text_table.h"
#include "tools/time/npu_use.h"

namespace skillet::tools {
namespace {

Result<void> add_claims(Placed& out, const runtime::Target& target, const ir::Graph& graph,
                        const runtime::SessionOptions& options) {
  SK_TRY_ASSIGN(const DelegateClaims claims, delegate_claims(target, graph, options));
  const std::vector<uint64_t> macs = macs_of(graph);
  double all = 0;
  for (size_t i = 0; i < macs.size(); ++i) {
    const bool is_claimed = claims.is_on_npu(i);
    all += static_cast<double>(macs[i]);
    out.claimed += is_claimed ? 1 : 0;
    out.claimed_macs += is_claimed ? static_cast<double>(macs[i]) : 0;
  }
  out.host_ops = graph.ops.size() - out.claimed;
  out.has_macs = all > 0;
  if (out.has_macs) out.claimed_macs /= all;
  return {};
}

void add_macs(Placed& out, const ir::Graph& graph, const compile::Compiled& compiled) {
  std::vector<uint64_t> model = macs_of(graph);
  out.macs = std::accumulate(model.begin(), model.end(), uint64_t{0});
  const std::vector<uint64_t> macs = compile::model_macs(compiled, std::move(model));
  for (size_t op = 0; op < compiled.ops.size(); ++op) out.npu_macs += compiled.ops[op].on_npu ? macs[op] : 0;
}

std::string print_time(const Placed& placed) {
  if (!placed.time) return "not known";
  if (placed.time->nowhere != 0) return "it cannot run";
  return fmt::format("{} +-{:.0f} %{}", print_ms(placed.time->whole_us() / 1000), 100 * placed.time->error,
                     on_cores(placed.time->cores));
}

}  // namespace

Result<Placed> place(const runtime::Target& target, const ir::Graph& graph, runtime::SessionOptions options) {
  options.cores = 1;
  SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, graph, options));
  Placed out{.use = compile::model_use(compiled)};
  out.left = static_cast<size_t>(std::ranges::count(compile::works_on_npu(compiled), false));
  out.npu_parts = compile::npu_parts(compiled);
  add_macs(out, graph, compiled);
  const auto measured = runtime::measured_parameters(target.chip, target.trust.get());
  SK_TRY_ASSIGN(out.time, time_if_known(target.chip.name, compiled, measured));
  SK_TRY(add_claims(out, target, graph, options));
  return out;
}

nlohmann::json to_json(const Placed& placed) {
  nlohmann::json out = {{"npu_ops", placed.use.npu_ops},       {"part_ops", placed.use.part_ops},
                        {"folded_ops", placed.use.folded_ops}, {"ops", placed.use.ops},
                        {"npu_parts", placed.npu_parts},       {"cpu_ops", placed.left},
                        {"delegate_ops", placed.claimed},      {"delegate_cpu_ops", placed.host_ops}};
  if (placed.time) out.update(json_of(*placed.time));
  return out;
}

void add_rows(TextTable& table, const Placed& before, const Placed& after, std::string_view host) {
  const auto parts = [](const Placed& one) { return fmt::format("{}", one.npu_parts); };
  const auto claimed = [](const Placed& one) {
    return fmt::format("{} of {} operations", one.claimed, one.claimed + one.host_ops);
  };
  const auto macs = [](const Placed& one) {
    return one.has_macs ? fmt::format("{:.1f} %", 100 * one.claimed_macs) : std::string("-");
  };
  table.add({"on the NPU (run, check)", compile::print(before.use), compile::print(after.use)});
  table.add({"parts on the NPU", parts(before), parts(after)});
  table.add({"whole network, simulated", print_time(before), print_time(after)});
  if (host.empty()) return;
  table.add({fmt::format("claimed by {}", host), claimed(before), claimed(after)});
  table.add({"MACs of what is claimed", macs(before), macs(after)});
}

std::string why_claims_differ(const Placed& before, const Placed& after) {
  const auto is_same = [](const Placed& one) { return one.claimed == one.use.npu_ops; };
  if (is_same(before) && is_same(after)) return "";
  return wrapped_lines(
      "the delegate claims whole operations, and predicts each group of them by itself; run and check divide the "
      "rewritten network, also inside an operation\n",
      0);
}

}  // namespace skillet::tools
