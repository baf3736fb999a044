// `skillet tune`: finds the best tuning choices for a model on a device: with the timing model if the device is
// simulated, else by measuring sets of choices.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/stopwatch.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "compile/report.h"
#include "runtime/cost_model.h"
#include "runtime/costs.h"
#include "runtime/program_cache.h"
#include "runtime/session.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/model.h"
#include "tools/run/apart.h"
#include "tools/show/progress.h"
#include "tools/show/statistics.h"
#include "tools/show/text_table.h"
#include "tools/tensors/tensor_file.h"
#include "tools/time/clocks.h"
#include "tools/time/npu_use.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

// Calls complain(), which writes one line, for each line.
void complain_lines(std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    complain(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

using compile::TuningFile;

// The minimised time: wall time on the mainline kernel, with starting tasks, or time of the device alone.
constexpr std::array<std::string_view, 2> kObjectives = {"wall", "device"};

struct Options {
  std::string model, device, output, objective = "wall";
  tflite::ImportOptions import_as;
  int runs = 20, warm_up = 3;
  SessionFlags session;
};

// Measured differences below this are noise.
constexpr double kWorth = 0.99;

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = session_options(options.session);
  out.compile.tuning = npu::Tuning::tuned;
  out.cores = 1;  // bands have graphs of their own
  return out;
}

struct Found {
  TuningFile file;
  double before_us = 0, after_us = 0;  // predicted times of the objective
  double start_us = 0;                 // part of these times for starting tasks
  size_t npu_ops = 0;                  // operations of the model itself
};

// The costs without starting tasks.
compile::ProgramCosts device_time_of(compile::ProgramCosts program_costs) {
  return [program_costs =
              std::move(program_costs)](const npu::Program& program) -> Result<std::vector<compile::OperationCost>> {
    SK_TRY_ASSIGN(std::vector<compile::OperationCost> costs, program_costs(program));
    for (compile::OperationCost& cost : costs) cost.start_us = 0;
    return costs;
  };
}

// Text: whether the times include starting jobs. If tasks are not started one by one, no choice changes that time.
std::string_view starts_of(const Found& found, const Options& options) {
  if (found.start_us > 0) return " and for starting its tasks";
  return options.objective == "device" ? "" : ", without starting its jobs";
}

// Choices by the timing model, part by part.
Result<Found> by_model(const ir::Graph& graph, const runtime::Target& target, const Options& options) {
  Found out;
  runtime::SessionOptions session = session_options(options);
  session.compile.tuning = npu::Tuning::proven;
  SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, graph, session));
  npu::CompileOptions tuned = session_options(options).compile;
  auto program_costs =
      runtime::timing_costs(target.chip, runtime::measured_parameters(target.chip, target.trust.get()));
  if (program_costs.ok() && options.objective == "device") *program_costs = device_time_of(std::move(*program_costs));
  if (!program_costs.ok() && target.simulated)
    return error(ErrorCode::unsupported, "{}: no time can be predicted, and a simulated device cannot be measured: {}",
                 target.name, program_costs.error().message);
  out.npu_ops = compile::model_use(compiled).npu_ops;
  for (const compile::Part& part : compiled.parts) {
    if (!part.program) continue;
    const ir::Graph& ops = part.partition.graph;
    compile::TunedPart& one = out.file.parts.emplace_back();
    one.graph = runtime::graph_key(ops);
    if (!program_costs.ok()) continue;
    SK_TRY_ASSIGN(compile::Tuned found, compile::tune(*target.driver, target.chip, ops, tuned, *program_costs));
    one.choices = std::move(found.choices);
    SK_TRY_ASSIGN(const std::vector<compile::OperationCost> now,
                  compile::operation_costs(*part.program, ops, *program_costs));
    out.before_us += compile::sum_of(now).wall_us();  // time without a tuning file
    out.after_us += compile::sum_of(found.after).wall_us();
    out.start_us += compile::sum_of(now).start_us + compile::sum_of(found.after).start_us;
  }
  if (out.file.parts.empty()) return nothing_on_npu(compiled, target.name, options.model);
  return out;
}

std::set<std::string> names_in(const TuningFile& file) {
  std::set<std::string> names;
  for (const compile::TunedPart& part : file.parts)
    for (const npu::Choice& one : part.choices) names.insert(one.name);
  return names;
}

TuningFile without(TuningFile file, const std::string& name) {
  for (compile::TunedPart& part : file.parts)
    std::erase_if(part.choices, [&](const npu::Choice& one) { return name.empty() || one.name == name; });
  return file;
}

// One set of choices, ready to measure.
struct Candidate {
  std::string what;
  TuningFile file;
  std::unique_ptr<runtime::Session> session;
  std::vector<Bytes> outputs;
  std::vector<double> ms;
};

Result<Candidate> candidate_of(std::string what, TuningFile file, const ir::Graph& graph, const runtime::Target& target,
                               const std::vector<Bytes>& inputs, const Options& options) {
  Candidate out{.what = std::move(what), .file = std::move(file)};
  runtime::SessionOptions session = session_options(options);
  session.tuning = std::make_shared<TuningFile>(out.file);
  session.allow_fallback = true;
  SK_TRY_ASSIGN(out.session, runtime::Session::create(graph, target, session));
  const std::vector<std::span<const uint8_t>> spans(inputs.begin(), inputs.end());
  SK_TRY_ASSIGN(out.outputs, out.session->run(spans));
  SK_TRY(check_npu_use(target.name, npu_use(*out.session)));
  return out;
}

Result<std::vector<Candidate>> candidates(const Found& model, const ir::Graph& graph, const runtime::Target& target,
                                          const Options& options) {
  SK_TRY_ASSIGN(const std::vector<Bytes> inputs, random_inputs(1, graph));
  std::vector<std::pair<std::string, TuningFile>> sets = {{"no choices", without(model.file, "")},
                                                          {"all choices of the model", model.file}};
  for (const std::string& name : names_in(model.file)) sets.emplace_back("without " + name, without(model.file, name));
  std::vector<Candidate> out;
  for (auto& [what, file] : sets) {
    SK_TRY_ASSIGN(Candidate one, candidate_of(what, std::move(file), graph, target, inputs, options));
    if (!out.empty() && one.outputs != out[0].outputs) {
      complain(fmt::format("{}: results differ from those without choices: skipped, please report it (skillet bug)",
                           one.what));
      continue;
    }
    out.push_back(std::move(one));
  }
  return out;
}

// Runs candidates in turns, so that drifts affect all of them.
Result<void> measure(std::vector<Candidate>& candidates, const runtime::Target& target, const Options& options) {
  const Progress progress("measuring");
  for (int run = -options.warm_up; run < options.runs; ++run) {
    for (Candidate& one : candidates) {
      const Stopwatch clock;
      SK_TRY(one.session->run());
      if (run >= 0) one.ms.push_back(clock.ms());
    }
  }
  for (const Candidate& one : candidates)
    SK_TRY(check_npu_use(target.name, npu_use(*one.session)).with_context(one.what));
  return {};
}

std::string machine_state() {
  std::vector<std::string> out;
  for (const Clock& one : read_clocks())
    out.push_back(fmt::format("{} {:.0f} MHz {}", one.name, one.mhz, one.governor));
  for (const Temperature& one : read_temperatures()) out.push_back(fmt::format("{} {:.1f} C", one.name, one.celsius));
  return out.empty() ? "clocks and temperatures are unknown" : fmt::format("{}", fmt::join(out, ", "));
}

Result<TuningFile> by_measuring(const Found& model, const ir::Graph& graph, const runtime::Target& target,
                                const Options& options) {
  SK_TRY_ASSIGN(std::vector<Candidate> all, candidates(model, graph, target, options));
  const std::string before = machine_state();
  SK_TRY(measure(all, target, options));
  const std::string after = machine_state();
  size_t best = 0;
  std::string text;
  TextTable table({"choices", "runs", "min ms", "median ms", "p90 ms"});
  for (size_t i = 0; i < all.size(); ++i) {
    const Statistics s = statistics_of(all[i].ms);
    const double limit = statistics_of(all[best].ms).median * (best == 0 ? kWorth : 1);
    if (i > 0 && s.median < limit) best = i;
    table.add({all[i].what, fmt::format("{}", s.count), fmt::format("{:.3f}", s.min), fmt::format("{:.3f}", s.median),
               fmt::format("{:.3f}", s.p90)});
    text += fmt::format("{}: median {:.3f} ms, p90 {:.3f}; ", all[i].what, s.median, s.p90);
  }
  complain_lines(fmt::format("{}best: {}\nbefore: {}\nafter: {}", table.print(), all[best].what, before, after));
  TuningFile file = std::move(all[best].file);
  file.found = fmt::format("measured, {} runs each: {}best: {}; before: {}; after: {}", options.runs, text,
                           all[best].what, before, after);
  return file;
}

Result<void> tune(const Options& options, Outcome& outcome) {
  SK_TRY(check_apart({{"MODEL", options.model}}, {{"--output", options.output}}));
  SK_TRY_ASSIGN(const ir::Graph graph, import_model(options.model, options.import_as));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  if (target.driver == nullptr)
    return error(ErrorCode::invalid_argument, "--device {}: the CPU has nothing to tune; name an NPU", options.device);
  if (!target.simulated && options.objective == "device")
    return error(ErrorCode::invalid_argument,
                 "--objective device: on {} wall time is measured; tune its simulated chip instead", options.device);
  if (!options.output.empty()) SK_TRY(check_place(options.output));
  outcome.begin();
  SK_TRY_ASSIGN(Found found, by_model(graph, target, options));
  found.file.found =
      fmt::format("timing model: {:.4g} -> {:.4g} ms for {} on the NPU{}, simulated{}", found.before_us / 1000,
                  found.after_us / 1000, counted(found.npu_ops, "operation"), starts_of(found, options),
                  at_clock(clock_of(target.chip.name, runtime::measured_parameters(target.chip, target.trust.get()))));
  TuningFile file = found.file;
  if (!target.simulated) SK_TRY_INTO(file, by_measuring(found, graph, target, options));
  file.chip = target.chip.name;
  file.build = compile::build_id();
  file.model = options.model;
  file.device = target.name;
  const std::string text = print(file);
  if (options.output.empty()) {
    out("{}", text);
  } else {
    SK_TRY(write_file(options.output, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
    out("{}\nwritten to {}\n", file.found, options.output);
  }
  outcome.exit_code = kFine;
  return {};
}

}  // namespace

void add_tune(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("tune",
               "Find the best choices of the tuning for a model on a device, for --tuning-file: measured on a "
               "real NPU, by the timing model on a simulated one.\n"
               "Example: skillet tune models/digits.tflite --device sim:a311d");
  verb.option("MODEL", options->model, "a .tflite or .onnx file").required();
  add_import(verb, options->import_as);
  verb.option("--device", options->device, kDeviceHelp).required().variable(kDeviceVariable);
  verb.option("-o,--output", options->output, "tuning file to write; default: it is printed").check(not_empty());
  verb.option("--objective", options->objective,
              "what to minimize: wall time on the mainline kernel, or time of the device alone (simulated ones)")
      .shows_default()
      .check(one_of(kObjectives));
  verb.option("--runs", options->runs, "runs for each set of choices, if runs are measured")
      .shows_default()
      .check(whole_number(1, 100'000));
  verb.option("--warm-up", options->warm_up, "warm-up runs before that")
      .shows_default()
      .check(whole_number(0, 100'000));
  add_unproven(verb, options->session);
  add_per_channel(verb, options->session);
  add_partition(verb, options->session);
  runs_jobs(verb, outcome, [options, &outcome] { return tune(*options, outcome); });
}

}  // namespace skillet::tools
