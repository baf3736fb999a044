#include "runtime/prove.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/stop.h"
#include "compile/build_id.h"
#include "graph/ir/graph.h"
#include "kernels/api/forwarding_device.h"
#include "kernels/fake/simulated.h"
#include "runtime/device_context.h"
#include "runtime/session.h"
#include "runtime/trial.h"
#include "runtime/trusted_driver.h"
#include "runtime/verify.h"

namespace skillet::runtime {
namespace {

struct NamedGraph {
  std::string_view name, text;
};
constexpr NamedGraph kGraphs[] = {
#define GRAPH(name, text) {#name, text},
#include "runtime/prove_graphs.def"
#undef GRAPH
};

// Ignores SKILLET_SIM_QUIRK, which is meant for the device under test.
std::string simulated_name(std::string_view chip, std::string_view quirk) {
  return fmt::format("sim:{},quirk=!{}", chip, quirk);
}

// True if the outcome is unknown until the step is tried again.
bool is_open(ProofOutcome outcome) {
  return outcome == ProofOutcome::begun || outcome == ProofOutcome::risky || outcome == ProofOutcome::failed;
}

ProofOutcome outcome_of(const Trial& trial) {
  switch (trial.outcome) {
    case Trial::Outcome::right: return ProofOutcome::right;
    case Trial::Outcome::wrong: return ProofOutcome::wrong;
    case Trial::Outcome::hangs: return ProofOutcome::hangs;
    case Trial::Outcome::not_asked: break;
  }
  return trial.code == ErrorCode::unsupported ? ProofOutcome::not_asked : ProofOutcome::failed;
}

class LosesJobs : public kernels::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool loses_jobs() const override { return true; }
};

// The assumptions that were seen to hold or not.
std::vector<TrustEntry> trust_entries(const ProofReport& report) {
  std::vector<TrustEntry> entries;
  for (const ProofStep& step : report.steps) {
    const bool holds = step.outcome == ProofOutcome::right;
    if (step.kind != ProofKind::assumption || (!holds && !is_refuted(step.outcome))) continue;
    entries.push_back(entry_of_probe(step.name, holds, step.what));
  }
  return entries;
}

void add_outputs(const Trial& trial, ProofStep& step) {
  step.outputs.clear();
  for (const std::vector<Bytes>& run : trial.outputs)
    for (const Bytes& one : run) step.outputs.push_back(proof_output(one));
}

// False: hangs show nothing, because the device or its kernel driver may be at fault.
bool has_ended_any(const ProofReport& report) {
  return std::ranges::any_of(report.steps, [](const ProofStep& step) {
    return step.outcome == ProofOutcome::right || step.outcome == ProofOutcome::wrong;
  });
}
constexpr std::string_view kNoneEnded = "no job ended, so the cause of the hang is unknown";

// The ending of a report whose steps were all run, except those left out.
std::string end_of_all(const ProofReport& report) {
  const auto left_out = std::ranges::count(report.steps, ProofOutcome::risky, &ProofStep::outcome);
  if (left_out == 0) return std::string(kAllSteps);
  return fmt::format("{} steps that may hang, or stand on one that may, were left out: --risky takes them", left_out);
}

// The findings of the steps before `until`; null: of all steps. They are not written to a file.
std::unique_ptr<Trust> trust_of(const ProofReport& report, const ProofStep* until) {
  auto trust = std::make_unique<Trust>(report.device, "");
  ProofReport before{.device = {}, .build = {}, .date = {}, .facts = {}, .ended = {}, .steps = {}};
  for (const ProofStep& step : report.steps) {
    if (&step == until) break;
    before.steps.push_back(step);
  }
  trust->add(trust_entries(before));
  return trust;
}

// True if the simulator knows a way in which this assumption fails by hanging.
bool may_hang(const std::string& chip, const npu::Assumption& assumption) {
  const Trust nothing({}, "");
  return std::ranges::any_of(sim::quirks(chip), [&](const sim::Quirk& quirk) {
    if (quirk.assumption != assumption.name) return false;
    const Result<Target> target = open_for_trials(simulated_name(chip, quirk.name));
    if (!target.ok()) return false;
    return try_assumption(*target, nothing, assumption, {}).outcome == Trial::Outcome::hangs;
  });
}

class Prover {
 public:
  Prover(const ProveOptions& options, ProofReport& report) : options_(options), report_(report) {}

  Result<void> run() {
    SK_TRY(begin());
    for (const npu::Assumption& row : driver_->assumptions(chip_)) {
      if (row.probe.empty()) continue;
      const auto graph = ir::parse(row.probe);
      if (graph.ok()) SK_TRY(take(ProofKind::assumption, row.name, *graph, &row));
    }
    for (const NamedGraph& row : kGraphs) {
      SK_TRY_ASSIGN(const ir::Graph graph, ir::parse(row.text));
      SK_TRY(take(ProofKind::operation, row.name, graph, nullptr));
    }
    if (!report_.device.is_virtual())
      for (const Benchmark& row : benchmarks()) SK_TRY(take_time(row));
    if (report_.ended.empty() && !has_ended_any(report_) && stops_ != 0) report_.ended = kNoneEnded;
    if (report_.ended.empty()) report_.ended = end_of_all(report_);
    return options_.keep(report_);
  }

 private:
  Result<void> begin() {
    SK_TRY_ASSIGN(Target target, open_target(options_.device));
    if (target.trust == nullptr)
      return error(ErrorCode::invalid_argument, "--device {}: there is nothing to prove; name an NPU", options_.device);
    driver_ = target.driver;
    chip_ = target.chip;
    const DeviceIdentity here = target.trust->file().device;
    target.trust = nullptr;
    device_.emplace(std::move(target));
    if (report_.steps.empty()) {
      report_.device = options_.serial ? here : without_serial(here);
      report_.build = compile::build_id();
      report_.date = trust_date();
    }
    if (const auto same = check_made_here(report_, here); !same.ok())
      return error(ErrorCode::invalid_argument, "{}; delete it or give another -o", same.error().message);
    report_.ended.clear();
    resume();
    return {};
  }

  // A step that began and did not end counts as hanging. If the machine was not restarted meanwhile, that takes two
  // times: a user, or a full disk, may have stopped this program.
  void resume() {
    const bool is_same_start = !options_.boot.empty() && report_.fact(kBoot) == options_.boot;
    for (ProofStep& step : report_.steps) {
      if (step.outcome != ProofOutcome::begun) continue;
      const bool is_first = std::exchange(report_.fact(kStoppedAt), step.name) != step.name;
      step.outcome = is_same_start && is_first ? ProofOutcome::failed : ProofOutcome::hangs;
      step.what = "it started and did not end: the machine or this program stopped";
    }
    report_.fact(kBoot) = options_.boot;
    std::erase_if(report_.steps, [&](const ProofStep& step) {
      return step.outcome == ProofOutcome::failed ||
             (options_.risky && (step.outcome == ProofOutcome::risky || step.outcome == ProofOutcome::hangs));
    });
    for (const ProofStep& step : report_.steps) stops_ += step.outcome == ProofOutcome::hangs ? 1 : 0;
  }

  Result<void> take(ProofKind kind, std::string_view name, const ir::Graph& graph, const npu::Assumption* row) {
    SK_TRY_ASSIGN(std::optional<ProofStep> step, begin(kind, name, graph, row));
    if (!step) return {};
    const auto trust = trust_of(report_, nullptr);
    const auto once = [&] {
      return row != nullptr ? try_assumption(*device_, *trust, *row, {}) : try_operations(*device_, *trust, graph, {});
    };
    Trial trial = once();
    if (trial.is_late && !is_down(trial, row) && reopen()) trial = once();
    return end(std::move(*step), trial, row);
  }

  Result<void> take_time(const Benchmark& benchmark) {
    SK_TRY_ASSIGN(std::optional<ProofStep> step, begin(ProofKind::time, benchmark.name, benchmark.graph(), nullptr));
    if (!step) return {};
    const auto took = time_benchmark(*device_, *trust_of(report_, nullptr), benchmark);
    Trial trial;
    if (!took.ok()) {
      trial = failed_trial(took.error());
    } else {
      step->ns = static_cast<int64_t>(took->us * 1e3);
      step->spread_ns = static_cast<int64_t>(took->spread_us * 1e3);
    }
    return end(std::move(*step), trial, nullptr);
  }

  // None: the step is left out.
  Result<std::optional<ProofStep>> begin(ProofKind kind, std::string_view name, const ir::Graph& graph,
                                         const npu::Assumption* row) {
    if (!report_.ended.empty() || report_.find(kind, name) != nullptr) return std::optional<ProofStep>();
    if (stops_ >= kProofHangsMax) {
      report_.ended = fmt::format("{} steps hung or failed", stops_);
      return std::optional<ProofStep>();
    }
    SK_TRY(check_stop());
    options_.say(fmt::format("{} {}", kProofKindNames[static_cast<size_t>(kind)], name));
    ProofStep step{.kind = kind,
                   .name = std::string(name),
                   .outcome = ProofOutcome::risky,
                   .what = why_risky(graph, row, *trust_of(report_, nullptr)),
                   .outputs = {}};
    const bool is_risky = !step.what.empty();
    if (!is_risky) step.outcome = ProofOutcome::begun;
    put(step);
    SK_TRY(options_.keep(report_));
    return is_risky ? std::nullopt : std::optional(std::move(step));
  }

  Result<void> end(ProofStep step, const Trial& trial, const npu::Assumption* row) {
    if (const auto stop = check_stop(); !stop.ok()) {  // stopped by the user, not the device
      std::erase_if(report_.steps, [](const ProofStep& one) { return one.outcome == ProofOutcome::begun; });
      SK_TRY(options_.keep(report_));
      return stop;
    }
    step.outcome = outcome_of(trial);
    step.what = trial.what.substr(0, kWhatMax);
    add_outputs(trial, step);
    if (is_refuted(step.outcome) && is_down(trial, row)) {
      step.outcome = ProofOutcome::failed;
      report_.ended = "the device now fails other jobs too: " + step.what;
    }
    const bool stopped = step.outcome == ProofOutcome::hangs || step.outcome == ProofOutcome::failed;
    put(std::move(step));
    SK_TRY(options_.keep(report_));
    if (stopped) ++stops_, device_.reset();
    return device_ || reopen() ? Result<void>() : options_.keep(report_);
  }

  // Returns whether other jobs fail now too. Tries those of unknown outcome only with --risky.
  bool is_down(const Trial& trial, const npu::Assumption* row) {
    device_.reset();  // closes a file that waits for a hung job
    const auto trust = trust_of(report_, nullptr);
    for (const npu::Assumption& one : driver_->assumptions(chip_))
      if (!options_.risky && !trust->find(TrustKind::assumption, one.name))
        trust->add({entry_of_probe(one.name, false, "")});
    const Others others = try_others(options_.device, *trust, row, {});
    return others == Others::fail || (trial.is_late && others == Others::none);
  }

  // Opening a new file ends the old one, with jobs that wait there for a hung job. False: the report says why.
  bool reopen() {
    device_.reset();
    Result<Target> again = open_for_trials(options_.device);
    if (again.ok()) return device_.emplace(std::move(again).value()), true;
    report_.ended = "the device did not come back: " + again.error().message.substr(0, kWhatMax);
    return false;
  }

  void put(ProofStep step) {
    if (ProofStep* const there = report_.find(step.kind, step.name); there != nullptr)
      *there = std::move(step);
    else
      report_.steps.push_back(std::move(step));
  }

  // Why the step may hang; empty: it may not, or --risky allows it. A fault would be blamed on the wrong row if an
  // assumption that the graph stands on was left out.
  std::string why_risky(const ir::Graph& graph, const npu::Assumption* row, const Trust& trust) {
    if (options_.risky) return "";
    if (stops_ > 0) return "a step before it hung or failed";
    SessionOptions how{.compile = {.unproven = npu::Unproven::take}, .partition = compile::PartitionBy::all};
    how.compile.without = refuted_switches(*driver_, trust);
    const auto planned = plan_for(*device_, graph, how);
    if (!planned.ok()) return "";
    bool is_asked = false;
    for (const compile::OpPlace& place : planned->ops) {
      for (const npu::Assumption* one : place.stands_on) {
        is_asked |= one == row;
        const ProofStep* const before = report_.find(ProofKind::assumption, one->name);
        if (one != row && before != nullptr && is_open(before->outcome))
          return fmt::format("it depends on {}, which was not tried", one->name);
      }
    }
    return is_asked && may_hang(chip_.name, *row) ? "a chip that differs here may hang" : "";
  }

  static constexpr size_t kWhatMax = 1000;
  static constexpr std::string_view kBoot = "start of the machine", kStoppedAt = "stopped at";  // facts
  const ProveOptions& options_;
  ProofReport& report_;
  std::optional<Target> device_;
  const npu::Driver* driver_ = nullptr;
  npu::Chip chip_;
  int stops_ = 0;  // number of steps that hung or failed
};

}  // namespace

Result<void> check_made_here(const ProofReport& report, const DeviceIdentity& here) {
  if (without_serial(report.device) != without_serial(here))
    return error(ErrorCode::invalid_argument, "device: the report is for {}; this one is {}", report.device.text(),
                 without_serial(here).text());
  if (report.build != compile::build_id())
    return error(ErrorCode::invalid_argument, "build: the report was made by another build of Skillet");
  return {};
}

bool is_whole(const ProofReport& report) { return report.ended == end_of_all(report); }

Result<void> prove(const ProveOptions& options, ProofReport& report) { return Prover(options, report).run(); }

Result<std::vector<TrustEntry>> believed_entries(const ProofReport& report) {
  std::vector<TrustEntry> entries = has_ended_any(report) ? trust_entries(report) : std::vector<TrustEntry>();
  SK_TRY_ASSIGN(const std::vector<MeasuredCost> costs, costs_of(report));
  for (const MeasuredCost& one : costs) {
    if (!one.value) continue;
    entries.push_back(
        {.kind = TrustKind::cost,
         .name = one.name,
         .confirmed = true,
         .build = {},
         .date = {},
         .evidence = fmt::format("{:.4g} +-{:.2g} {}; expected: {:.4g}", *one.value, one.error, one.unit, one.expected),
         .value = *one.value});
  }
  return entries;
}

Result<std::vector<MeasuredCost>> costs_of(const ProofReport& report) {
  std::map<std::string, MeasuredTime> times;
  for (const ProofStep& step : report.steps)
    if (step.kind == ProofKind::time && step.outcome == ProofOutcome::right)
      times[step.name] = {static_cast<double>(step.ns) / 1e3, static_cast<double>(step.spread_ns) / 1e3};
  if (times.empty()) return std::vector<MeasuredCost>();
  SK_TRY_ASSIGN(const npu::Chip chip, npu::find_chip(report.device.chip));
  return explain_times(chip, *trust_of(report, nullptr), times, report.device.is_simulated());
}

AssumptionRow row_of(const ProofReport& report, const ProofStep& step) {
  const auto chip = npu::find_chip(report.device.chip);
  const auto family = chip.ok() ? npu::driver_of(*chip) : Result<const npu::Driver*>(chip.error());
  if (!family.ok()) return {};
  const auto rows = (*family)->assumptions(*chip);
  const auto row = std::ranges::find(rows, step.name, &npu::Assumption::name);
  return row == rows.end() ? AssumptionRow{} : AssumptionRow{*family, &*row};
}

Result<std::vector<std::string>> candidates_of(const ProofReport& report, const ProofStep& step) {
  std::vector<std::string> same;
  const AssumptionRow found = row_of(report, step);
  if (step.kind != ProofKind::assumption || !is_refuted(step.outcome) || found.row == nullptr) return same;
  const auto trust = trust_of(report, &step);
  for (const bool is_own : {true, false}) {  // its own assumption's, then others that show in this probe
    for (const sim::Quirk& quirk : sim::quirks(report.device.chip)) {
      if ((quirk.assumption == step.name) != is_own) continue;
      SK_TRY(check_stop());
      SK_TRY_ASSIGN(Target target, open_for_trials(simulated_name(report.device.chip, quirk.name)));
      // A board that loses jobs cannot distinguish a job that writes nothing from one that hangs.
      if (!report.device.is_simulated())
        target.context->device = std::make_unique<LosesJobs>(std::move(target.context->device));
      const Result<Trial> tried = try_probe(target, *trust, *found.row, {});
      const Trial trial = tried.ok() ? *tried : failed_trial(tried.error());
      ProofStep simulated;
      add_outputs(trial, simulated);
      const bool is_same = outcome_of(trial) == step.outcome && simulated.outputs == step.outputs;
      if (is_same) same.emplace_back(quirk.name);
    }
    if (!same.empty()) break;
  }
  return same;
}

}  // namespace skillet::runtime
