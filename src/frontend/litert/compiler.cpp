#include "frontend/litert/compiler.h"

#include <algorithm>

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/host/choice.h"
#include "frontend/host/target.h"
#include "frontend/litert/subgraph.h"
#include "runtime/session_keys.h"
#include "runtime/verify.h"

namespace skillet::litert {
namespace {

Result<Place*> place_for(Compiler& compiler, const char* soc) {
  const std::string name = soc == nullptr ? "" : soc;
  std::unique_ptr<Place>& place = compiler.places[name];
  if (place != nullptr) return place.get();
  auto made = std::make_unique<Place>();
  if (name.empty()) {
    SK_TRY_ASSIGN(made->target, host::open_target(compiler.options));
  } else {
    // A chip that need not be present: all its cores, and no device to compare with the CPU.
    SK_TRY(npu::find_chip(name));
    SK_TRY_ASSIGN(made->target, runtime::open_target("null:" + name));
  }
  if (made->target.driver != nullptr)
    log::info("Skillet {} for LiteRT, {}, chip {}", SKILLET_VERSION, made->target.name, made->target.chip.title);
  place = std::move(made);
  return place.get();
}

// Divides sets as the host does: into operations that follow each other in its order.
std::vector<host::Set> runs_of(const std::vector<host::Set>& sets) {
  std::vector<host::Set> runs;
  for (const host::Set& set : sets) {
    for (const int op : set.nodes) {
      if (op == set.nodes.front() || runs.back().nodes.back() + 1 != op) runs.emplace_back();
      runs.back().nodes.push_back(op);
    }
  }
  return runs;
}

Result<std::vector<host::Refusal>> propose(const Subgraph& whole, const host::Set& set, bool by_cost,
                                           const Place& place, const host::Options& options, host::Choice& choice) {
  runtime::SessionOptions session = host::session_options(options);
  if (by_cost) session.partition = options.session.partition;
  session.programs = place.programs;
  SK_TRY_ASSIGN(const compile::Compiled compiled,
                runtime::compile_verified(place.target, host::graph_of(whole.graph, set), session));
  choice.add_compared(compiled.verified);
  return host::refusals_of(compiled, set.nodes);
}

Result<host::Choice> choose(const Subgraph& whole, const Place& place, const host::Options& options) {
  host::Choice choice(place.target, options, host::numbered(whole.ops.size()));
  for (size_t i = 0; i < whole.ops.size(); ++i)
    if (!whole.refusals[i].empty()) choice.refuse(static_cast<int>(i), whole.refusals[i]);
  SK_TRY(choice.ask(whole.graph));
  SK_TRY(choice.divide(
      {.divide = [&]() -> Result<std::vector<host::Set>> { return runs_of(choice.closed_sets(whole.graph)); },
       .propose = [&](const host::Set& set,
                      bool by_cost) { return propose(whole, set, by_cost, place, options, choice); }}));
  const host::Told told = choice.told(
      [&](int op) { return fmt::format("op {} {}", op, ir::op_name(whole.graph.ops[static_cast<size_t>(op)])); });
  host::log_told(told);
  SK_TRY(choice.check_strict(told));
  return choice;
}

}  // namespace

Result<std::unique_ptr<Compiler>> make_compiler(const void* context) {
  auto made = std::make_unique<Compiler>();
  made->host = Table(context);
  made->options = host::parse_options({}, environment_variable);
  const log::ScopedLevel level(made->options.log);
  if (made->options.help) log::write(log::Level::info, host::options_help("Skillet's plug-in"));
  SK_TRY(host::tell_problems_once(made->options));
  return made;
}

// With require_npu=1 loading must fail. The host would run its own kernels if the plug-in returned an error, but it has
// none for a claimed part, which make_device() refuses for the same reason.
Result<void> claim_in_vain(const Compiler& compiler, HostSubgraph* subgraph, HostOpList* list) {
  HostOp* first = nullptr;
  if (compiler.host.call(kOp, subgraph, size_t{0}, &first) == kOk && first != nullptr &&
      compiler.host.call(kPushOp, list, first, size_t{0}) == kOk)
    return {};
  return error(ErrorCode::internal, "the host does not take an operation");
}

std::unique_ptr<CompiledParts> parts_in_vain(size_t count, const std::string& why) {
  auto out = std::make_unique<CompiledParts>();
  for (size_t i = 0; i < count; ++i) {
    out->calls.push_back(fmt::format("skillet_{}", i));
    out->bytes.emplace_back(why.begin(), why.end());
  }
  return out;
}

Result<void> partition(Compiler& compiler, const char* soc, HostSubgraph* subgraph, HostOpList* list) {
  const std::lock_guard lock(compiler.mutex);
  const log::ScopedLevel level(compiler.options.log);
  const auto found = place_for(compiler, soc);
  if (!found.ok() && compiler.options.require_npu) return claim_in_vain(compiler, subgraph, list);
  SK_TRY_ASSIGN(Place* const place, found);
  if (place->target.driver == nullptr) {
    log::message(compiler.options.device == "cpu" ? log::Level::info : log::Level::warning,
                 "no operation goes to an NPU: {}", place->target.why_none);
    return {};
  }
  SK_TRY_ASSIGN(const Subgraph whole, read_subgraph(compiler.host, subgraph));
  SK_TRY_ASSIGN(const host::Choice choice, choose(whole, *place, compiler.options));
  for (size_t i = 0; i < choice.parts().size(); ++i) {
    for (const ir::OpId op : choice.parts()[i].nodes) {
      const Status status = compiler.host.call(kPushOp, list, whole.ops[static_cast<size_t>(op)], i);
      if (status != kOk) return error(ErrorCode::internal, "the host does not take an operation (status {})", status);
    }
  }
  return {};
}

Result<std::unique_ptr<CompiledParts>> compile(Compiler& compiler, const char* soc, HostModel* model) {
  const std::lock_guard lock(compiler.mutex);
  const log::ScopedLevel level(compiler.options.log);
  size_t count = 0;
  if (compiler.host.call(kNumSubgraphs, model, &count) != kOk)
    return error(ErrorCode::malformed, "the host does not give its parts");
  const auto found = place_for(compiler, soc);
  if (!found.ok() && compiler.options.require_npu) return parts_in_vain(count, found.error().message);
  SK_TRY_ASSIGN(Place* const place, found);
  if (place->target.driver == nullptr) return error(ErrorCode::unsupported, "{}", place->target.why_none);
  auto out = std::make_unique<CompiledParts>();
  for (size_t i = 0; i < count; ++i) {
    HostSubgraph* subgraph = nullptr;
    if (compiler.host.call(kSubgraph, model, i, &subgraph) != kOk)
      return error(ErrorCode::malformed, "the host does not give part {}", i);
    SK_TRY_ASSIGN(const Subgraph part, read_subgraph(compiler.host, subgraph));
    for (const std::string& refusal : part.refusals)
      if (!refusal.empty()) return error(ErrorCode::unsupported, "part {}: {}", i, refusal);
    runtime::SessionOptions session = host::session_options(compiler.options);
    session.programs = place->programs;
    SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_verified(place->target, part.graph, session));
    out->calls.push_back(fmt::format("skillet_{}", i));
    runtime::CompiledModel saved{
        .graph = part.graph, .note = out->calls.back(), .options = runtime::deciding_options(session)};
    SK_TRY_ASSIGN(saved.programs, place->programs->programs_of(compiled));
    SK_TRY_ASSIGN(Bytes bytes, runtime::save_compiled(saved));
    log::info("partition of {} ops, {} programs, {} bytes", part.ops.size(), saved.programs.size(), bytes.size());
    out->bytes.push_back(std::move(bytes));
  }
  return out;
}

}  // namespace skillet::litert
