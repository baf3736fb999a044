// The one ordered list of passes.
#include "base/log.h"
#include "passes/passes.h"

namespace skillet::passes {
namespace {

struct Pass {
  std::string_view name;
  Result<void> (*run)(ir::Graph& graph, const Target& target);
};

constexpr Pass kPasses[] = {
    {"remove_dead_ops", remove_dead_ops},
    {"share_weight_scales", share_weight_scales},
};

void trace(std::string_view when, const ir::Graph& graph) {
  if (!log::debug_flag("passes")) return;
  log::write(log::Level::info, fmt::format("graph {}:\n{}", when, ir::print(graph)));
}

}  // namespace

Result<void> run_pipeline(ir::Graph& graph, const Target& target) {
  SK_TRY(ir::verify(graph));
  trace("before passes", graph);
  for (const Pass& pass : kPasses) {
    SK_TRY(pass.run(graph, target).with_context(pass.name));
    SK_TRY(ir::verify(graph).with_context(fmt::format("after {}", pass.name)));
    trace(fmt::format("after {}", pass.name), graph);
  }
  return {};
}

}  // namespace skillet::passes
