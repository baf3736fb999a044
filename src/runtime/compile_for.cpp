#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "base/trace.h"
#include "runtime/compile_cache.h"
#include "runtime/cost_model.h"
#include "runtime/costs.h"
#include "runtime/program_cache.h"
#include "runtime/session.h"
#include "runtime/trusted_driver.h"
#include "runtime/tuned_driver.h"
#include "runtime/verify_again.h"

namespace skillet::runtime {
namespace {

compile::Runs runs_of(const SessionOptions& options) {
  if (options.longest_runs) return compile::Runs::longest;
  return options.cores > 1 ? compile::Runs::fastest : compile::Runs::that_pay;
}

Result<std::shared_ptr<const compile::TuningFile>> tuning_of(const Target& target, const SessionOptions& options) {
  if (options.tuning != nullptr || options.tuning_file.empty() || target.driver == nullptr) return options.tuning;
  SK_TRY_ASSIGN(compile::TuningFile file, load_tuning_file(expand_home(options.tuning_file), target.chip));
  return std::shared_ptr<const compile::TuningFile>(std::make_shared<compile::TuningFile>(std::move(file)));
}

// None: the chip is not timed.
std::optional<compile::CostModel> cost_model_of(const Target& target, int host_threads, Measured measured) {
  auto cost_model = timing_cost_model(target.chip, host_threads, measured);
  if (cost_model.ok()) return std::move(cost_model).value();
  log::info("{}: partition=work, not predicted: {}", target.chip.name, cost_model.error().message);
  return std::nullopt;
}

bool asks_trust(const Target& target, const SessionOptions& options) {
  return target.trust != nullptr && options.compile.unproven == npu::Unproven::verify &&
         (target.trust->refutes(TrustKind::assumption) || target.trust->refutes(TrustKind::operation));
}

npu::CompileOptions driver_options(const Target& target, const SessionOptions& options, bool is_tuned) {
  npu::CompileOptions out = options.compile;
  if (asks_trust(target, options)) out.without = refuted_switches(*target.driver, *target.trust);
  out.keep_intermediates |= options.keep_intermediates;
  if (is_tuned) out.tuning = npu::Tuning::tuned;
  return out;
}

// Further inputs of a program's compilation, for its key.
std::string cache_extra(const compile::TuningFile* file) { return file != nullptr ? print(*file) : ""; }

// What the device was seen to compute wrong.
std::string refuted_by(const Trust& trust) {
  std::set<std::string> out;
  for (const TrustEntry& one : trust.file().entries) {
    const bool is_asked = one.kind == TrustKind::assumption || one.kind == TrustKind::operation;
    if (is_asked && trust.is_refuted(one.kind, one.name))
      out.insert(fmt::format("{} {}", static_cast<int>(one.kind), one.name));
  }
  return fmt::format("{}", fmt::join(out, "\n"));
}

// All inputs of a compilation but the graph, the chip and Options::driver.
std::string deciding(const Target& target, const SessionOptions& session, const compile::Options& options,
                     const compile::TuningFile* file, bool is_plan) {
  std::string out = fmt::format(
      "plan={} unproven={} per_channel={} macs={} cores={} runs={} leave_out={} threads={} measured=", is_plan,
      static_cast<int>(options.driver.unproven), static_cast<int>(options.driver.per_channel),
      options.min_macs_per_byte, options.cores, static_cast<int>(options.runs), options.leave_out,
      options.cost_model != nullptr ? session.host_threads.value_or(0) : -1);
  for (const auto& [name, value] : options.measured) out += fmt::format("{}:{} ", name, value);
  if (asks_trust(target, session)) out += refuted_by(*target.trust);
  return out + "\n" + cache_extra(file);
}

TunedDriver tuned_driver(const Target& target, const compile::TuningFile* file, Measured measured) {
  auto program_costs = timing_costs(target.chip, measured);
  return {*target.driver, program_costs.ok() ? std::optional(*program_costs) : std::nullopt, file};
}

// `compile(graph)`, or what the cache has.
template <typename Compile>
Result<compile::Compiled> cached(const Compile& compile, ir::Graph graph, const CompileCache& cache) {
  if (auto known = cache.load(graph)) return std::move(*known);
  const ir::Graph model = graph;
  SK_TRY_ASSIGN(compile::Compiled compiled, compile(std::move(graph)));
  cache.save(compiled, model);
  return compiled;
}

// Without programs only what the driver would take.
Result<compile::Compiled> compile_with(const Target& target, ir::Graph graph, const SessionOptions& options,
                                       bool has_programs) {
  SK_TRY(check_process(target));
  const trace::Lease trace(options.trace);
  const trace::Slice slice(trace::kCompile);
  const size_t cores = target.pool != nullptr ? target.pool->most() : 1;
  SK_TRY_ASSIGN(const auto file, tuning_of(target, options));
  const compile::PartitionBy partition = partition_of(options);
  const std::vector<sim::ParameterValue> measured = measured_parameters(target.chip, target.trust.get());
  compile::Options out{
      .driver = driver_options(target, options, file != nullptr),
      .min_macs_per_byte =
          partition == compile::PartitionBy::all ? 0 : options.min_macs_per_byte.value_or(kMacsPerByte),
      .cores = options.cores == 0 ? static_cast<int>(cores) : std::min(options.cores, static_cast<int>(cores)),
      .runs = runs_of(options),
      .measured = by_name(measured),
      .leave_out = options.allow_fallback};
  if (const auto taken = check_taken(target, out.driver.unproven); !taken.ok())
    log::warning("everything runs on the CPU: {}", taken.error().message);
  std::optional<TunedDriver> tuned;
  std::optional<StoringDriver> store;
  std::optional<compile::CostModel> cost_model;
  if (target.driver != nullptr) {
    if (partition == compile::PartitionBy::predicted)
      cost_model = cost_model_of(target, options.host_threads.value_or(0), measured);
    if (cost_model) out.cost_model = &*cost_model;
    out.compiler = &tuned.emplace(tuned_driver(target, file.get(), measured));
    if (options.programs != nullptr) out.compiler = &store.emplace(*tuned, cache_extra(file.get()), *options.programs);
  }
  std::optional<TrustedDriver> trusted;
  const npu::Driver* asked = target.driver;
  if (asks_trust(target, options)) {
    asked = &trusted.emplace(*target.driver, *target.trust);
    out.kept = refuted_operations(graph, *target.trust);
  }
  compile::ModelKeys keys;
  if (VerifyAgain::can(target, options)) keys = model_keys(graph);
  const auto compile = [&](ir::Graph of) {
    const compile::Target at{asked, target.chip};
    return has_programs ? compile::compile(std::move(of), at, out) : compile::plan(std::move(of), at, out);
  };
  const bool uses_cache = target.driver != nullptr && !options.cache_dir.empty() && options.programs == nullptr;
  const auto compile_or_load = [&] {
    if (!uses_cache) return compile(std::move(graph));
    std::string key =
        cache_key(target.chip, graph, out.driver, deciding(target, options, out, file.get(), !has_programs));
    return cached(compile, std::move(graph),
                  {expand_home(options.cache_dir), std::move(key), *target.driver, target.chip});
  };
  auto compiled = compile_or_load();
  if (compiled.ok()) compiled->model_keys = std::move(keys);
  return compiled;
}

}  // namespace

compile::PartitionBy partition_of(const SessionOptions& options) {
  using compile::PartitionBy;
  return options.partition.value_or(options.min_macs_per_byte ? PartitionBy::work : PartitionBy::all);
}

SessionOptions with_defaults(SessionOptions options) {
  if (!options.partition && !options.min_macs_per_byte) options.partition = compile::PartitionBy::predicted;
  if (!options.host_threads) options.host_threads = 1;
  return options;
}

Result<compile::Compiled> compile_for(const Target& target, ir::Graph graph, const SessionOptions& options) {
  return compile_with(target, std::move(graph), options, true);
}

Result<npu::Program> compile_part(const Target& target, const ir::Graph& part, const SessionOptions& options) {
  SK_TRY_ASSIGN(const auto file, tuning_of(target, options));
  const std::vector<sim::ParameterValue> measured = measured_parameters(target.chip, target.trust.get());
  return tuned_driver(target, file.get(), measured)
      .compile(target.chip, part, driver_options(target, options, file != nullptr));
}

// An empty graph can only fail because of its options.
Result<void> check_options(const Target& target, const npu::CompileOptions& options) {
  if (target.driver == nullptr) return {};
  auto tried = target.driver->compile(target.chip, ir::Graph{}, options);
  return tried.ok() ? Result<void>() : std::move(tried).error();
}

Result<compile::Compiled> plan_for(const Target& target, ir::Graph graph, const SessionOptions& options) {
  return compile_with(target, std::move(graph), options, false);
}

}  // namespace skillet::runtime
