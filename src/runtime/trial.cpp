#include "runtime/trial.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/splitmix64.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "npu/steps_off.h"
#include "runtime/costs.h"
#include "runtime/trust.h"
#include "runtime/trusted_driver.h"
#include "runtime/verify.h"

namespace skillet::runtime {
namespace {

using compile::Compiled;
using Outcome = Trial::Outcome;

// Close to the kernel drivers' time limit of a job, 500 ms.
constexpr double kLateMs = 480;
// Number of other jobs that must also hang before the device counts as failing at all, if a proven one is not right;
// and the time limit of each. Jobs that end with wrong results do not count while another is right: a chip may differ
// in several ways.
constexpr int kControlsMax = 3;
constexpr std::chrono::milliseconds kControlTimeout{2000};

constexpr std::array kSigned = {ir::DType::int8, ir::DType::int16, ir::DType::int32, ir::DType::int64};

Bytes trial_bytes(const ir::Tensor& tensor, size_t index, uint64_t seed) {
  Bytes bytes(static_cast<size_t>(tensor.bytes()));
  const auto size = static_cast<size_t>(std::max(ir::dtype_bytes(tensor.dtype), 1)), bits = 8 * size;
  const bool is_signed = std::ranges::count(kSigned, tensor.dtype) != 0;
  const uint64_t least = is_signed ? uint64_t{1} << (bits - 1) : 0, most = is_signed ? least - 1 : ~uint64_t{0};
  SplitMix64 random(seed);
  for (size_t i = 0; i < bytes.size() / size; ++i) {
    const uint64_t next = random.next();
    uint64_t value = next >> 32;
    if (index == 1) value = static_cast<uint64_t>(tensor.quant.zero_point());
    if (index == 2) value = (next & 1) != 0 ? most : least;
    if (index == 3) value = i << (bits - 8);
    for (size_t byte = 0; byte < size; ++byte) bytes[i * size + byte] = static_cast<uint8_t>(value >> (8 * byte));
  }
  return bytes;
}

std::vector<std::span<const uint8_t>> spans_of(const std::vector<Bytes>& all) { return {all.begin(), all.end()}; }

}  // namespace

compile::Compiled alone(const ir::Graph& part) {
  compile::Compiled out;
  out.graph = part;
  out.model_ops = out.graph.ops.size();
  out.ops.assign(out.graph.ops.size(), {.on_npu = true});
  compile::Part& only = out.parts.emplace_back();
  only.partition.on_npu = true;
  only.partition.graph = out.graph;
  only.partition.op_map.resize(out.graph.ops.size());
  std::iota(only.partition.op_map.begin(), only.partition.op_map.end(), 0);
  only.partition.tensor_map.resize(out.graph.tensors.size());
  std::iota(only.partition.tensor_map.begin(), only.partition.tensor_map.end(), 0);
  return out;
}

SessionOptions with_time(SessionOptions options) {
  options.timeout = std::max(options.timeout, SessionOptions().timeout);
  return options;
}

SessionOptions trial_options(const npu::Driver& driver, const Trust& trust, const SessionOptions& options, bool keep) {
  return {.compile = {.tuning = options.compile.tuning,
                      .switches = options.compile.switches,
                      .without = refuted_switches(driver, trust),
                      .choices = options.compile.choices,
                      .unproven = npu::Unproven::take},
          .allow_fallback = false,
          .keep_intermediates = keep,
          .timeout = options.timeout,
          .tuning_file = options.tuning_file,
          .tuning = options.tuning};
}

std::string first_of(const ir::Graph& graph, const WrongOps& ops) {
  return ops.empty() ? "" : fmt::format("{}: {}", ir::describe_op(graph, ops.begin()->first), ops.begin()->second);
}

void note_wrong(const Session& session, const Target& target, std::span<const LayerDiff> diffs, WrongOps& ops) {
  for (const LayerDiff& diff : diffs) {
    if (!diff.compared) continue;
    const int steps = npu::steps_off(*target.driver, target.chip, session.graph(), diff.op);
    if (diff.max_abs_diff <= steps) continue;
    ops.try_emplace(diff.op, fmt::format("{} of {} values are off, by up to {}; {} is allowed", diff.differing,
                                         diff.elems, diff.max_abs_diff, steps));
  }
}

namespace {

struct Control {
  const npu::Assumption* row;
  const Trust* trust;  // all assumptions that it stands on may be tried under this trust
};

// Assumptions that were right before, then unknown ones, then those that stand on `asked` too, from the end of the
// table, as these have the least in common with it.
std::vector<Control> controls(std::span<const npu::Assumption> rows, const npu::Assumption* asked, const Trust& trust,
                              const Trust& without) {
  std::vector<Control> out;
  for (const bool is_known : {true, false})
    for (const npu::Assumption& one : rows)
      if (without.find(TrustKind::assumption, one.name).has_value() == is_known) out.push_back({&one, &without});
  for (size_t i = rows.size(); asked != nullptr && i-- > 0;) out.push_back({&rows[i], &trust});
  std::erase_if(out, [&](const Control& one) {
    return one.row->name == (asked == nullptr ? "" : asked->name) ||
           one.trust->is_refuted(TrustKind::assumption, one.row->name);
  });
  return out;
}

}  // namespace

Trial failed_trial(const Error& error) {
  Trial trial;
  trial.outcome = is_of_device(error) ? Outcome::hangs : Outcome::not_asked;
  trial.what = error.message;
  trial.code = error.code;
  return trial;
}

Result<Trial> try_session(Session& session, const Target& target, std::span<const size_t> inputs,
                          std::map<size_t, std::vector<Bytes>>* outputs) {
  WrongOps wrong;
  Trial trial;
  trial.fastest_ms = std::numeric_limits<double>::max();
  for (const size_t index : inputs) {
    const std::vector<Bytes> bytes = trial_inputs(session.graph(), index);
    const Stopwatch watch;
    SK_TRY_ASSIGN(std::vector<Bytes> results, session.run(spans_of(bytes)));
    trial.fastest_ms = std::min(trial.fastest_ms, watch.ms());
    SK_TRY_ASSIGN(const std::vector<LayerDiff> diffs, session.compare_layers());
    note_wrong(session, target, diffs, wrong);
    if (outputs != nullptr) (*outputs)[index] = std::move(results);
  }
  trial.what = first_of(session.graph(), wrong);
  for (const auto& [op, what] : wrong) trial.wrong.push_back(op);
  if (!wrong.empty()) trial.outcome = Outcome::wrong;
  return trial;
}

Result<Trial> try_real(Session& session, const std::map<size_t, std::vector<Bytes>>& expected) {
  Trial trial;
  for (const size_t index : kRealInputs) {
    const std::vector<Bytes> bytes = trial_inputs(session.graph(), index);
    SK_TRY_ASSIGN(std::vector<Bytes> results, session.run(spans_of(bytes)));
    const size_t same = index + 1 == kTrialInputs ? 0 : index;
    const bool is_same = results == expected.at(same);
    trial.outputs.push_back(std::move(results));
    if (is_same) continue;
    trial.outcome = Outcome::wrong;
    trial.what = "results differ from those of one operation at a time";
    break;
  }
  return trial;
}

namespace {

// Error: the operations do not test the assumption, if there is one.
Result<void> check_asked(const Compiled& compiled, const Trust& trust, const npu::CompileOptions& how,
                         const npu::Assumption* assumption) {
  bool is_asked = assumption == nullptr;
  for (const compile::OpPlace& place : compiled.ops) {
    if (assumption == nullptr && !place.on_npu)
      return error(ErrorCode::unsupported, "the chip does not take it: {}", place.reason);
    for (const npu::Assumption* one : place.stands_on) {
      is_asked |= one == assumption;
      if (one != assumption && how.may_have(one->name) && trust.is_refuted(TrustKind::assumption, one->name))
        return error(ErrorCode::unsupported, "its probe depends on {}, which is wrong on this device", one->name);
    }
  }
  if (is_asked) return {};
  const auto refused = std::ranges::find(compiled.ops, false, &compile::OpPlace::on_npu);
  if (refused != compiled.ops.end())
    return error(ErrorCode::unsupported, "the chip does not take its probe: {}", refused->reason);
  return error(ErrorCode::unsupported, "no program for this chip depends on it");
}

// If the kernel does not see a job end, the job ends by its time limit and is waited for normally. No small network
// takes that long each time, unless others do too (try_others).
bool is_late(const Target& target, const Trial& trial) { return !target.simulated && trial.fastest_ms >= kLateMs; }

Trial late_trial(const Target& target, double fastest_ms) {
  Trial trial = failed_trial(error(ErrorCode::fault,
                                   "{}: each run took {:.0f} ms or more: the kernel does not notice the end of a job",
                                   target.name, fastest_ms));
  trial.is_late = true;
  return trial;
}

Result<Trial> try_graph(const Target& target, const Trust& trust, const npu::Assumption* assumption,
                        const ir::Graph& graph, const SessionOptions& options) {
  std::map<size_t, std::vector<Bytes>> kept;
  std::vector<std::vector<Bytes>> outputs;
  Trial trial;
  for (const bool keep : {true, false}) {
    SessionOptions how = trial_options(*target.driver, trust, options, keep);
    how.partition = compile::PartitionBy::all;
    how.tuning_file.clear();  // it is for the network, not for a probe
    how.tuning = nullptr;
    SK_TRY_ASSIGN(Compiled compiled, compile_for(target, graph, how));
    SK_TRY(check_asked(compiled, trust, how.compile, assumption));
    SK_TRY_ASSIGN(const auto session, Session::create(std::move(compiled), target, how));
    constexpr size_t kAll[kTrialInputs] = {0, 1, 2, 3, 4};
    if (keep) {
      SK_TRY_ASSIGN(trial, try_session(*session, target, kAll, &kept));
      if (is_late(target, trial)) return late_trial(target, trial.fastest_ms);
      for (const auto& [input, results] : kept) outputs.push_back(results);
    } else {
      SK_TRY_ASSIGN(trial, try_real(*session, kept));
      outputs.insert(outputs.end(), trial.outputs.begin(), trial.outputs.end());
    }
    if (trial.outcome != Outcome::right) break;
  }
  trial.outputs = std::move(outputs);
  return trial;
}

}  // namespace

Result<Trial> try_probe(const Target& target, const Trust& trust, const npu::Assumption& assumption,
                        const SessionOptions& options) {
  SK_TRY(check_stop());
  if (assumption.probe.empty()) return error(ErrorCode::unsupported, "");
  SK_TRY_ASSIGN(const ir::Graph graph, ir::parse(assumption.probe));
  return try_graph(target, trust, &assumption, graph, options);
}

namespace {

// Tries a small convolution that recorded jobs contain: a device that computes it right does not fail at everything.
bool is_proven_right(const std::string& device, const Trust& trust, const SessionOptions& options) {
  const auto target = open_for_trials(device);
  if (!target.ok()) return false;
  const ir::Graph graph = benchmarks()[0].graph();
  const auto planned = plan_for(
      *target, graph, {.compile = {.unproven = npu::Unproven::refuse}, .partition = compile::PartitionBy::all});
  if (!planned.ok() || !std::ranges::all_of(planned->ops, &compile::OpPlace::on_npu)) return false;
  const auto tried = try_graph(*target, trust, nullptr, graph, options);
  return tried.ok() && tried->outcome == Outcome::right;
}

}  // namespace

Others try_others(const std::string& device, const Trust& trust, const npu::Assumption* asked,
                  const SessionOptions& options) {
  Trust without(trust.file().device, "");
  std::vector<TrustEntry> known = trust.file().entries;
  std::erase_if(known, [](const TrustEntry& one) { return !is_of_this_build(one); });
  if (asked != nullptr) known.push_back(entry_of_probe(asked->name, false, ""));
  without.add(std::move(known));
  SessionOptions soon = options;
  soon.timeout = std::min(soon.timeout, kControlTimeout);
  const auto opened = open_for_trials(device);
  if (!opened.ok()) return Others::fail;
  int failures = 0;  // jobs that did not end
  bool is_any_bad = false;
  for (const Control& one : controls(opened->driver->assumptions(opened->chip), asked, trust, without)) {
    const auto target = open_for_trials(device);
    const auto tried = target.ok() ? try_probe(*target, *one.trust, *one.row, soon) : Result<Trial>(target.error());
    if (!tried.ok() && tried.error().code == ErrorCode::unsupported) continue;
    if (tried.ok() && tried->outcome == Outcome::right) return Others::right;
    const bool was_right = trust.find(TrustKind::assumption, one.row->name).has_value();
    failures += tried.ok() && !tried->is_late ? 0 : 1;
    if (was_right) return Others::fail;
    is_any_bad = true;
    if (failures == kControlsMax) break;
  }
  if (!is_any_bad) return Others::none;
  return is_proven_right(device, trust, soon) ? Others::right : Others::fail;
}

bool is_of_device(const Error& error) { return error.code == ErrorCode::fault || error.code == ErrorCode::timeout; }

std::string why_not_asked(const Target& target, const Trust& trust, const npu::Assumption& assumption) {
  const auto graph = ir::parse(assumption.probe);
  if (!graph.ok()) return "it has no separate probe";
  SessionOptions how = trial_options(*target.driver, trust, {}, false);
  how.partition = compile::PartitionBy::all;
  const auto planned = plan_for(target, *graph, how);
  const auto asked =
      planned.ok() ? check_asked(*planned, trust, how.compile, &assumption) : Result<void>(planned.error());
  return asked.ok() ? "" : asked.error().message;
}

Trial try_assumption(const Target& target, const Trust& trust, const npu::Assumption& assumption,
                     const SessionOptions& options) {
  return try_twice(target, [&](const Target& device) { return try_probe(device, trust, assumption, options); });
}

Trial try_operations(const Target& target, const Trust& trust, const ir::Graph& graph, const SessionOptions& options) {
  return try_twice(target, [&](const Target& device) -> Result<Trial> {
    SK_TRY(check_stop());
    return try_graph(device, trust, nullptr, graph, options);
  });
}

std::vector<Bytes> trial_inputs(const ir::Graph& graph, size_t index) {
  std::vector<Bytes> out;
  for (const ir::TensorId id : graph.inputs)
    out.push_back(trial_bytes(graph.tensor(id), index, graph.inputs.size() * 7919 + out.size()));
  return out;
}

}  // namespace skillet::runtime
