// `skillet bench`: measures the time of a network on an NPU and on the CPU.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "graph/ref/ref.h"
#include "runtime/session.h"
#include "runtime/tuned_driver.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/model.h"
#include "tools/show/progress.h"
#include "tools/show/statistics.h"
#include "tools/show/text_table.h"
#include "tools/tensors/tensor_file.h"
#include "tools/time/clocks.h"
#include "tools/time/cpu_row.h"
#include "tools/time/npu_use.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, device = "auto";
  tflite::ImportOptions import_as;
  SessionFlags session;
  int runs = 50, warm_up = 5;
  bool json = false, csv = false, row = false, without_cpu = false, verbose = false, per_op = false;
};

struct PartTimes {
  bool on_npu = false;
  size_t ops = 0, jobs = 0;
  double mean_ms = 0;
};
struct OpTimes {
  std::string kind, output;
  double first_ms = 0, mean_ms = 0;
};
struct Report {
  std::string device;
  bool simulated = false;
  double prepare_ms = 0;
  Statistics device_ms, cpu_ms;
  NpuUse use;
  std::vector<PartTimes> parts;
  std::vector<int> part_of;             // by operation of the model; -1: folded into others
  std::vector<OpTimes> ops;             // times on the CPU kernels; empty: --without-cpu
  std::vector<runtime::JobTimes> jobs;  // by part, with --per-op
  sim::Clock predicted_clock;           // clock for their predicted times
  long peak_kib = 0;
  std::vector<Clock> clocks;
};

Result<void> time_device(runtime::Session& session, const std::vector<Bytes>& inputs, const Options& options,
                         Report& report) {
  const Progress progress(fmt::format("running on {}", report.device));
  for (size_t i = 0; i < inputs.size(); ++i) SK_TRY(session.set_input(i, inputs[i]));
  for (int i = 0; i < options.warm_up; ++i) SK_TRY(session.run());
  report.parts.resize(session.report().parts.size());
  std::vector<double> times;
  for (int i = 0; i < options.runs; ++i) {
    const Stopwatch clock;
    SK_TRY(session.run());
    times.push_back(clock.ms());
    for (size_t k = 0; k < report.parts.size(); ++k)
      report.parts[k].mean_ms += session.report().parts[k].run_ms / options.runs;
  }
  for (size_t k = 0; k < report.parts.size(); ++k) {
    const runtime::PartReport& part = session.report().parts[k];
    report.parts[k].on_npu = part.on_npu && part.fallback.empty();
    report.parts[k].ops = part.ops.size();
    report.parts[k].jobs = runtime::jobs_of(session, k);
    for (const ir::OpId op : part.ops) {
      const auto source = static_cast<size_t>(session.graph().op(op).source_index);
      if (source < report.part_of.size()) report.part_of[source] = static_cast<int>(k);
    }
  }
  report.device_ms = statistics_of(std::move(times));
  return {};
}

Result<void> time_jobs(runtime::Session& session, const Options& options, Report& report) {
  const Progress progress(fmt::format("timing single jobs on {}", report.device));
  for (size_t i = 0; i < report.parts.size(); ++i)
    SK_TRY_INTO(report.jobs.emplace_back(), session.time_jobs(i, options.runs));
  return {};
}

// Times the whole network on the CPU kernels, operation by operation. A network without CPU kernels, as from a vendor's
// compiler, is not timed.
Result<void> time_cpu(const ir::Graph& graph, const std::vector<Bytes>& inputs, const Options& options,
                      Report& report) {
  const compile::Words words = words_of(options.model);
  const Progress progress("running on the CPU kernels");
  auto created = ref::Interpreter::create(graph);
  if (!created.ok() && created.error().code == ErrorCode::unsupported && !options.row) {
    log::warning("no times of the CPU kernels: {}", created.error().message);
    return {};
  }
  SK_TRY_ASSIGN(ref::Interpreter interpreter, std::move(created));
  for (size_t i = 0; i < inputs.size(); ++i) std::ranges::copy(inputs[i], interpreter.tensor(graph.inputs[i]).begin());
  for (const ir::Op& op : graph.ops)
    report.ops.push_back(
        {compile::op_name(words, op), op.outputs.empty() ? "" : graph.tensor(op.outputs[0]).shape.to_string(), 0, 0});
  std::vector<double> times;
  for (int i = -options.warm_up; i < options.runs; ++i) {
    const Stopwatch clock;
    double last_ms = 0;
    SK_TRY(check_stop());
    SK_TRY(interpreter.run_each([&](ir::OpId op) {
      const double now_ms = clock.ms();
      OpTimes& one = report.ops[static_cast<size_t>(op)];
      if (i == -options.warm_up) one.first_ms = now_ms - last_ms;
      if (i >= 0) one.mean_ms += (now_ms - last_ms) / options.runs;
      last_ms = now_ms;
    }));
    if (i >= 0) times.push_back(clock.ms());
  }
  report.cpu_ms = statistics_of(std::move(times));
  return {};
}

// Peak memory of this program. ru_maxrss of getrusage() may be that of the parent program, because exec() keeps it.
long peak_kib() {
  constexpr std::string_view kKey = "VmHWM:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(kKey)) return std::strtol(line.c_str() + kKey.size(), nullptr, 10);
  return 0;
}

double per_second(const Statistics& times) { return times.mean > 0 ? 1000 / times.mean : 0; }

// One row: a name, then a column for each statistic.
std::vector<std::string> row_of(const std::string& what, const Statistics& s) {
  const auto ms = [](double value) { return fmt::format("{:.3f}", value); };
  return {what,      fmt::format("{}", s.count),          ms(s.min), ms(s.mean), ms(s.median), ms(s.p90), ms(s.p99),
          ms(s.max), fmt::format("{:.1f}", per_second(s))};
}

const std::vector<std::string> kColumns = {"where",  "runs",   "min ms", "mean ms",   "median ms",
                                           "p90 ms", "p99 ms", "max ms", "per second"};

std::vector<std::vector<std::string>> statistic_rows(const Report& report) {
  const std::string whose = report.device + (report.use.fallback_ops > 0 ? ", failed: the CPU" : "");
  std::vector<std::vector<std::string>> out = {row_of(whose, report.device_ms)};
  if (!report.ops.empty()) out.push_back(row_of("cpu kernels", report.cpu_ms));
  return out;
}

std::string share(double part, double all) { return fmt::format("{:.1f} %", all > 0 ? 100 * part / all : 0); }

std::string where_of(const Report& report, size_t op) {
  const int part = report.part_of[op];
  return part < 0 ? "-" : report.parts[static_cast<size_t>(part)].on_npu ? "npu" : "cpu";
}

// Time of all jobs: each job run alone; together_us(): the jobs of each part run together.
double alone_us(const Report& report) {
  double sum = 0;
  for (const runtime::JobTimes& part : report.jobs)
    for (const runtime::JobTime& job : part.jobs) sum += job.mean_us;
  return sum;
}
double together_us(const Report& report) {
  double sum = 0;
  for (const runtime::JobTimes& part : report.jobs) sum += part.together_us;
  return sum;
}
std::string predicted_ms(const runtime::JobTime& job, std::string_view none) {
  return job.predicted_us ? fmt::format("{:.3f}", *job.predicted_us / 1e3) : std::string(none);
}

// Number of operations of a job; their names are a list.
size_t operations_of(const runtime::JobTime& job) {
  return job.operations.empty() ? 0 : 1 + static_cast<size_t>(std::ranges::count(job.operations, ','));
}
// Text: the operations that the job's time includes.
std::string said_of(const runtime::JobTime& job, std::string_view with) {
  const size_t count = operations_of(job);
  return count > 1 ? fmt::format("{} operations in one job{}", count, with) : "";
}

// Jobs without a time are in no table.
void warn_of_untimed_jobs(const Report& report) {
  for (size_t part = 0; part < report.jobs.size(); ++part) {
    if (report.parts[part].on_npu && report.jobs[part].jobs.empty() && report.parts[part].jobs > 0)
      log::warning("part {} shares several cores, so its jobs are not timed alone; use --cores 1", part);
  }
}

void print_jobs(const Options& options, const Report& report) {
  TextTable jobs({"part", "job", "alone ms", "of their sum", "predicted ms", "operations"});
  for (size_t part = 0; part < report.jobs.size(); ++part) {
    for (const runtime::JobTime& job : report.jobs[part].jobs)
      jobs.add({fmt::format("{}", part), job.name, fmt::format("{:.3f}", job.mean_us / 1e3),
                share(job.mean_us, alone_us(report)), predicted_ms(job, "-"), said_of(job, ": ") + job.operations});
  }
  if (jobs.empty()) return out("\nno NPU job can be timed alone on this device\n");
  const std::string sums = fmt::format(
      "jobs one by one, submission and wait included, means of {} runs: {} in total; all of a part together: {}; "
      "predicted{}",
      options.runs, print_ms(alone_us(report) / 1e3), print_ms(together_us(report) / 1e3),
      at_clock(report.predicted_clock));
  out("\n{}\n{}", wrapped(sums, 2), jobs.print_wrapped());
}

// True if the CPU runs this operation: its time is that of the CPU kernels.
bool is_on_cpu(const Report& report, size_t op) { return report.part_of[op] >= 0 && where_of(report, op) == "cpu"; }

// Columns of TensorFlow Lite's benchmark_model, then our own.
void print_jobs_csv(const Options& options, const Report& report) {
  out("node type,first,avg_ms,%,cdf%,mem KB,times called,name,predicted_ms\n");
  double all_us = alone_us(report), until_us = 0;
  for (size_t op = 0; op < report.ops.size(); ++op)
    if (is_on_cpu(report, op)) all_us += report.ops[op].mean_ms * 1e3;
  const auto percent = [&](double us) { return all_us > 0 ? 100 * us / all_us : 0; };
  for (size_t part = 0; part < report.jobs.size(); ++part) {
    for (const runtime::JobTime& job : report.jobs[part].jobs) {
      until_us += job.mean_us;
      const std::string several = said_of(job, "");
      out("\"{}\",{:.3f},{:.3f},{:.3f},{:.3f},0,{},\"part {} {}{}\",{}\n", job.operations, job.first_us / 1e3,
          job.mean_us / 1e3, percent(job.mean_us), percent(until_us), options.runs, part, job.name,
          several.empty() ? "" : ", " + several, predicted_ms(job, ""));
    }
  }
  for (size_t op = 0; op < report.ops.size(); ++op) {
    if (!is_on_cpu(report, op)) continue;
    const OpTimes& one = report.ops[op];
    until_us += one.mean_ms * 1e3;
    out("\"{}\",{:.3f},{:.3f},{:.3f},{:.3f},0,{},\"part {} op {}, cpu kernels\",\n", one.kind, one.first_ms,
        one.mean_ms, percent(one.mean_ms * 1e3), percent(until_us), options.runs, report.part_of[op], op);
  }
}

nlohmann::json json_of(const std::vector<runtime::JobTimes>& parts) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t part = 0; part < parts.size(); ++part) {
    for (const runtime::JobTime& job : parts[part].jobs)
      out.push_back({{"part", part},
                     {"name", job.name},
                     {"operations", job.operations},
                     {"operation_count", operations_of(job)},
                     {"first_ms", job.first_us / 1e3},
                     {"mean_ms", job.mean_us / 1e3},
                     {"predicted_ms", job.predicted_us ? nlohmann::json(*job.predicted_us / 1e3) : nlohmann::json()}});
  }
  return out;
}

void print_text(const Options& options, const Report& report) {
  out("{} on {}\n", printable(options.model), report.device);
  if (report.simulated)
    out("{}\n",
        wrapped(fmt::format("simulated: these are the simulator's times; `skillet plan` predicts those of the chip{}",
                            at_clock(report.predicted_clock)),
                2));
  out("{} on the NPU\n\n", compile::print(report.use.model));
  TextTable times(kColumns);
  for (auto& row : statistic_rows(report)) times.add(row);
  std::vector<std::string> header = {"part", "where", "mean", "share"};
  if (options.verbose) header.emplace_back("operations after the passes");
  TextTable parts(std::move(header));
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const PartTimes& part = report.parts[i];
    std::vector<std::string> row = {fmt::format("{}", i), part.on_npu ? "npu" : "cpu", print_ms(part.mean_ms),
                                    share(part.mean_ms, report.device_ms.mean)};
    if (options.verbose) row.push_back(fmt::format("{}", part.ops));
    parts.add(std::move(row));
  }
  out("{}\n{}", times.print(), parts.print());
  if (!report.ops.empty()) {
    TextTable ops({"op", "kind", "output", "part", "where", "mean on the cpu kernels", "of their time"});
    for (size_t i = 0; i < report.ops.size(); ++i)
      ops.add({fmt::format("{}", i), report.ops[i].kind, report.ops[i].output,
               report.part_of[i] < 0 ? "-" : fmt::format("{}", report.part_of[i]), where_of(report, i),
               print_ms(report.ops[i].mean_ms), share(report.ops[i].mean_ms, report.cpu_ms.mean)});
    out("\noperations of the model; a part may run other ones\n{}", ops.print());
  }
  if (options.per_op) print_jobs(options, report);
  out("\nprepared in {}; peak memory {}; warm-up {} runs\n", print_ms(report.prepare_ms),
      print_bytes(static_cast<uint64_t>(report.peak_kib) * 1024), options.warm_up);
  for (const Clock& one : report.clocks)
    out("clock of {}: {:.0f} MHz{}\n", one.name, one.mhz, one.governor.empty() ? "" : ", governor " + one.governor);
  if (report.clocks.empty()) out("clocks: this machine does not report them\n");
}

void print_csv(const Report& report) {
  out("{}\n", fmt::join(kColumns, ","));
  for (const auto& row : statistic_rows(report)) out("{}\n", fmt::join(row, ","));
}

void print_row(const Options& options, const ir::Graph& graph, const Report& report) {
  std::vector<double> op_ms;
  for (const OpTimes& one : report.ops) op_ms.push_back(one.mean_ms);
  out("{}", cpu_row(options.model, graph, report.cpu_ms.median, op_ms));
}

nlohmann::json json_of(const Statistics& s) {
  return {{"runs", s.count}, {"min_ms", s.min}, {"mean_ms", s.mean}, {"median_ms", s.median},
          {"p90_ms", s.p90}, {"p99_ms", s.p99}, {"max_ms", s.max},   {"per_second", per_second(s)}};
}

void print_json(const Options& options, const Report& report) {
  nlohmann::json parts = nlohmann::json::array(), ops = nlohmann::json::array(), clocks = nlohmann::json::array();
  for (const PartTimes& one : report.parts)
    parts.push_back({{"where", one.on_npu ? "npu" : "cpu"}, {"ops", one.ops}, {"mean_ms", one.mean_ms}});
  for (size_t i = 0; i < report.ops.size(); ++i)
    ops.push_back({{"kind", report.ops[i].kind},
                   {"output", report.ops[i].output},
                   {"part", report.part_of[i]},
                   {"where", where_of(report, i)},
                   {"cpu_mean_ms", report.ops[i].mean_ms}});
  for (const Clock& one : report.clocks)
    clocks.push_back({{"name", one.name}, {"mhz", one.mhz}, {"governor", one.governor}});
  nlohmann::json all = {{"model", options.model},
                        {"device", report.device},
                        {"simulated", report.simulated},
                        {"warm_up", options.warm_up},
                        {"prepare_ms", report.prepare_ms},
                        {"times", json_of(report.device_ms)},
                        {"parts", parts},
                        {"ops", ops},
                        {"peak_kib", report.peak_kib},
                        {"clocks", clocks}};
  if (options.per_op) {
    all["jobs"] = json_of(report.jobs);
    all["predicted_clock_mhz"] = mhz_or_null(report.predicted_clock);
    all["jobs_alone_ms"] = alone_us(report) / 1e3;
    all["jobs_together_ms"] = together_us(report) / 1e3;
  }
  if (!report.ops.empty()) all["cpu_times"] = json_of(report.cpu_ms);
  add_json(all, report.use);
  out_report(std::move(all));
}

Result<void> bench(Options& options, Outcome& outcome) {
  options.device = runtime::device_meant(options.device);
  if (options.row && options.without_cpu)
    return error(ErrorCode::invalid_argument, "--row needs the CPU kernels: not with --without-cpu");
  std::optional<runtime::CompiledModel> compiled;
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model, options.import_as, &compiled));
  SK_TRY_ASSIGN(const std::vector<Bytes> inputs, random_inputs(1, graph));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  if (options.device != "auto") SK_TRY(runtime::check_taken(target, unproven_of(options.session)));
  complain_of_cores(options.session, target);
  SK_TRY(check_cache(options.session));
  SK_TRY(runtime::check_tuning_file(target, options.session.tuning_file));
  Report report{.device = target.name};
  report.simulated = target.simulated;
  report.predicted_clock = clock_of(target.chip.name);
  report.part_of.assign(graph.ops.size(), -1);
  runtime::SessionOptions session_options = tools::session_options(options.session);
  session_options.programs = programs_for(compiled, target);
  const Stopwatch prepare_clock;
  auto created = runtime::Session::create(graph, target, session_options);
  outcome.begin_with(created);
  SK_TRY_ASSIGN(const auto session, std::move(created).with_context(options.model));
  report.prepare_ms = prepare_clock.ms();
  say_unused(compiled, session_options.programs.get(), target, session_options, options.model);
  SK_TRY(time_device(*session, inputs, options, report));
  if (options.per_op) {
    SK_TRY(time_jobs(*session, options, report));
    warn_of_untimed_jobs(report);
  }
  report.use = npu_use(*session);
  report.clocks = read_clocks();  // before the CPU run, while the NPU is warm
  if (!options.without_cpu) SK_TRY(time_cpu(graph, inputs, options, report));
  report.peak_kib = peak_kib();
  if (options.json)
    print_json(options, report);
  else if (options.csv && options.per_op)
    print_jobs_csv(options, report);
  else if (options.csv)
    print_csv(report);
  else if (options.row)
    print_row(options, graph, report);
  else
    print_text(options, report);
  return check_npu_use(options.device, report.use);
}

}  // namespace

void add_bench(CommandLine& app, Outcome& outcome) {
  constexpr int kMostRuns = 10'000'000;
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("bench",
                             "Time a network: many runs with random inputs, on a device and on the CPU kernels.\n"
                             "Example: skillet bench models/digits.tflite --device sim:a311d --runs 20");
  verb.option("MODEL", options->model, kModelHelp).required();
  add_import(verb, options->import_as);
  verb.option("--device", options->device, kDeviceHelp).shows_default().variable(kDeviceVariable);
  verb.option("--runs", options->runs, "number of timed runs").shows_default().check(whole_number(1, kMostRuns));
  verb.option("--warm-up", options->warm_up, "number of runs before them")
      .shows_default()
      .check(whole_number(0, kMostRuns));
  add_running_session(verb, options->session);
  verb.flag("--without-cpu", options->without_cpu, "do not also run on the CPU kernels");
  verb.flag(
      "--per-op", options->per_op,
      "also time each NPU job alone, next to its predicted time; with --csv that table, in benchmark_model's format");
  const Option csv = verb.flag("--csv", options->csv, "the times as comma-separated values");
  const Option row = verb.flag("--row", options->row,
                               "the CPU kernels' time as a row of published times, for ./x calibrate --cpu-rows");
  row.excludes(csv);
  verb.flag("--verbose", options->verbose, "also count the operations after the passes");
  verb.flag("--json", options->json, "machine-readable output").excludes(csv).excludes(row);
  runs_jobs(verb, outcome, [options, &outcome] { return bench(*options, outcome); });
}

}  // namespace skillet::tools
