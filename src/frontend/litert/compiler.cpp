#include "frontend/litert/compiler.h"

#include <algorithm>
#include <set>

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "compile/advice.h"
#include "frontend/host/choice.h"
#include "frontend/host/target.h"
#include "frontend/litert/subgraph.h"
#include "graph/passes/passes.h"
#include "runtime/verify.h"

namespace skillet::litert {
namespace {

constexpr int kMaxRounds = 16;  // as each drops at least one operation, or ends

Result<Place*> place_for(Compiler& compiler, const char* soc) {
  const std::string name = soc == nullptr ? "" : soc;
  std::unique_ptr<Place>& place = compiler.places[name];
  if (place != nullptr) return place.get();
  auto made = std::make_unique<Place>();
  if (name.empty()) {
    SK_TRY_ASSIGN(made->target, host::open_target(compiler.options, made->why_none));
  } else {
    // A chip that need not be here: as many cores, and nothing that could be compared with the CPU.
    SK_TRY(npu::find_chip(name));
    SK_TRY_ASSIGN(made->target, runtime::open_target("null:" + name));
  }
  if (made->target.driver != nullptr) {
    log::info("Skillet {} for LiteRT, {}, chip {}", SKILLET_VERSION, made->target.name, made->target.chip.title);
    made->driver = std::make_unique<host::KeepingDriver>(*made->target.driver);
    made->target.driver = made->driver.get();
  }
  place = std::move(made);
  return place.get();
}

// As the host divides what it is given: operations that follow each other in its order.
std::vector<std::vector<ir::OpId>> runs_of(const std::vector<ir::OpId>& ops) {
  std::vector<std::vector<ir::OpId>> runs;
  for (const ir::OpId op : ops) {
    if (runs.empty() || runs.back().back() + 1 != op) runs.emplace_back();
    runs.back().push_back(op);
  }
  return runs;
}

class Chooser {
 public:
  Chooser(const Subgraph& whole, const runtime::Target& target, const host::Options& options)
      : whole_(whole), target_(target), options_(options), refusals_(whole.refusals) {}

  Result<void> run() {
    SK_TRY(ask_driver());
    for (int round = 0; round < kMaxRounds; ++round) {
      divide();
      bool all_stay = true;
      for (const std::vector<ir::OpId>& part : parts) all_stay &= judge(part);
      all_stay = all_stay && limit();
      if (all_stay) return {};
    }
    for (const std::vector<ir::OpId>& part : parts) drop(part, "the parts of the rest keep changing");
    parts.clear();
    return {};
  }

  std::vector<std::vector<ir::OpId>> parts;
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  void refuse(ir::OpId op, const std::string& reason) {
    std::string& known = refusals_[static_cast<size_t>(op)];
    if (known.empty()) known = reason.empty() ? "the NPU's driver does not take it" : reason;
  }
  bool drop(std::span<const ir::OpId> part, const std::string& reason) {
    for (const ir::OpId op : part) refuse(op, reason);
    return false;
  }

  Result<void> ask_driver() {
    const std::string advice = compile::quantization_advice(
        whole_.graph, {target_.driver, target_.chip, options_.session.compile.per_channel}, compile::Rest::in_the_host);
    if (!advice.empty()) log::warning("{}", advice);
    SK_TRY_ASSIGN(const compile::Compiled planned,
                  runtime::plan_for(target_, whole_.graph, host::session_options(options_)));
    const host::Planned made = host::planned_for(planned);
    for (const host::Refusal& refusal : made.refusals) refuse(refusal.node, refusal.reason);
    for (size_t i = 0; i < whole_.ops.size(); ++i) {
      if (!std::ranges::binary_search(made.left, static_cast<int>(i)))
        refuse(static_cast<ir::OpId>(i), "nothing reads what it computes");
    }
    return {};
  }

  // In sets that no path leaves and comes back to.
  void divide() {
    std::vector<npu::Support> support;
    for (const std::string& refusal : refusals_)
      support.push_back(refusal.empty() ? npu::Support::yes() : npu::Support::no(npu::Remedy::none, "{}", refusal));
    parts.clear();
    for (const passes::Partition& part : passes::partition(whole_.graph, support))
      if (part.on_npu) std::ranges::move(runs_of(part.op_map), std::back_inserter(parts));
  }

  // Compiles, to see what the NPU would really do. False: operations were refused.
  bool judge(const std::vector<ir::OpId>& part) {
    if (right_.contains(part)) return true;
    const int minimum = options_.min_nodes_per_partition;
    if (static_cast<int>(part.size()) < minimum)
      return drop(part,
                  fmt::format("its partition has {} ops, fewer than min_nodes_per_partition={}", part.size(), minimum));
    runtime::SessionOptions session = host::session_options(options_);
    session.partition = options_.session.partition;
    auto compiled = runtime::compile_verified(target_, part_of(whole_, part), session);
    if (!compiled.ok()) return drop(part, compiled.error().message);
    std::vector<int> own(part.size());
    for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<int>(i);
    const auto refusals = host::refusals_of(*compiled, own);
    for (const host::Refusal& refusal : refusals) refuse(part[static_cast<size_t>(refusal.node)], refusal.reason);
    if (refusals.empty()) right_.insert(part);
    return refusals.empty();
  }

  // Keeps the parts of the most operations. True: all.
  bool limit() {
    const auto most = static_cast<size_t>(options_.max_delegated_partitions);
    if (most == 0 || parts.size() <= most) return true;
    std::ranges::stable_sort(parts, std::greater{}, [](const auto& part) { return part.size(); });
    for (size_t i = most; i < parts.size(); ++i)
      drop(parts[i], fmt::format("max_delegated_partitions={} other partitions have more operations", most));
    return false;
  }

  const Subgraph& whole_;
  const runtime::Target& target_;
  const host::Options& options_;
  std::vector<std::string> refusals_;  // by op; empty: ours
  std::set<std::vector<ir::OpId>> right_;
};

void log_result(const Subgraph& whole, const Chooser& made) {
  size_t claimed = 0;
  std::string first;
  for (size_t i = 0; i < whole.ops.size(); ++i) {
    const std::string& refusal = made.refusals()[i];
    if (refusal.empty()) ++claimed;
    const std::string line = fmt::format("op {} {}: {}", i, ir::op_name(whole.graph.ops[i]), refusal);
    if (!refusal.empty()) log::info("{}", line);
    if (!refusal.empty() && first.empty()) first = line;
  }
  if (!log::enabled(log::Level::warning)) return;
  const bool untold = claimed != whole.ops.size() && !log::enabled(log::Level::info);
  log::write(log::Level::info,
             fmt::format("{} of {} ops claimed, {} partitions{}", claimed, whole.ops.size(), made.parts.size(),
                         untold ? "; SKILLET_LOG=info says why not the others" : ""));
  if (claimed == 0 && untold) log::warning("nothing is claimed, such as {}", first);
}

}  // namespace

Result<std::unique_ptr<Compiler>> make_compiler(const void* context) {
  auto made = std::make_unique<Compiler>();
  made->host = Table(context);
  made->options = host::parse_options({}, environment_variable);
  const log::ScopedLevel level(made->options.log);
  if (made->options.help) log::write(log::Level::info, host::options_help("Skillet's plug-in"));
  SK_TRY(host::tell_problems(made->options));
  return made;
}

Result<void> partition(Compiler& compiler, const char* soc, HostSubgraph* subgraph, HostOpList* list) {
  const std::lock_guard lock(compiler.mutex);
  const log::ScopedLevel level(compiler.options.log);
  SK_TRY_ASSIGN(Place* const place, place_for(compiler, soc));
  if (place->target.driver == nullptr) {
    log::message(compiler.options.device == "cpu" ? log::Level::info : log::Level::warning,
                 "no operation goes to an NPU: {}", place->why_none);
    return {};
  }
  SK_TRY_ASSIGN(const Subgraph whole, read_subgraph(compiler.host, subgraph));
  Chooser chooser(whole, place->target, compiler.options);
  SK_TRY(chooser.run());
  log_result(whole, chooser);
  const auto left = static_cast<size_t>(
      std::ranges::count_if(chooser.refusals(), [](const std::string& one) { return !one.empty(); }));
  if (compiler.options.strict && left != 0)
    return error(ErrorCode::unsupported, "strict=1, but {} of {} ops would run on the CPU", left, whole.ops.size());
  for (size_t i = 0; i < chooser.parts.size(); ++i) {
    for (const ir::OpId op : chooser.parts[i]) {
      const Status status = compiler.host.call(kPushOp, list, whole.ops[static_cast<size_t>(op)], i);
      if (status != kOk) return error(ErrorCode::internal, "the host does not take an operation (status {})", status);
    }
  }
  return {};
}

Result<std::unique_ptr<CompiledParts>> compile(Compiler& compiler, const char* soc, HostModel* model) {
  const std::lock_guard lock(compiler.mutex);
  const log::ScopedLevel level(compiler.options.log);
  SK_TRY_ASSIGN(Place* const place, place_for(compiler, soc));
  if (place->target.driver == nullptr) return error(ErrorCode::unsupported, "{}", place->why_none);
  size_t count = 0;
  if (compiler.host.call(kNumSubgraphs, model, &count) != kOk)
    return error(ErrorCode::malformed, "the host does not give its parts");
  auto out = std::make_unique<CompiledParts>();
  for (size_t i = 0; i < count; ++i) {
    HostSubgraph* subgraph = nullptr;
    if (compiler.host.call(kSubgraph, model, i, &subgraph) != kOk)
      return error(ErrorCode::malformed, "the host does not give part {}", i);
    SK_TRY_ASSIGN(const Subgraph part, read_subgraph(compiler.host, subgraph));
    for (const std::string& refusal : part.refusals)
      if (!refusal.empty()) return error(ErrorCode::unsupported, "part {}: {}", i, refusal);
    SK_TRY_ASSIGN(compile::Compiled compiled,
                  runtime::compile_verified(place->target, part.graph, host::session_options(compiler.options)));
    SK_TRY_ASSIGN(const auto programs, place->driver->kept(compiled));
    SK_TRY_ASSIGN(Bytes bytes, host::save_part(place->target.chip.name, part.graph, programs));
    log::info("partition of {} ops, {} programs, {} bytes", part.ops.size(), programs.size(), bytes.size());
    out->bytes.push_back(std::move(bytes));
    out->calls.push_back(fmt::format("skillet_{}", i));
  }
  return out;
}

}  // namespace skillet::litert
