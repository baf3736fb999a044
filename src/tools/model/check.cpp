// `skillet check`: which operations of a model run where, and why not on the NPU.
#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "compile/advice.h"
#include "frontend/host/choice.h"
#include "graph/ref/ref.h"
#include "runtime/costs.h"
#include "runtime/session.h"
#include "runtime/trust.h"
#include "runtime/tuned_driver.h"
#include "runtime/verify.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/check_chips.h"
#include "tools/model/model.h"
#include "tools/run/apart.h"
#include "tools/show/print_advice.h"
#include "tools/show/progress.h"
#include "tools/show/text_table.h"
#include "tools/time/npu_use.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, device, require, html;  // no device: all chips
  tflite::ImportOptions import_as;
  SessionFlags session;
  bool json = false, delegate = false, verbose = false;
};

struct Row {
  compile::OpRow op;
  std::string where;
  bool works = false;  // a job of the NPU computes it
  uint64_t macs = 0;
};

struct Report {
  std::string device, chip;
  std::vector<Row> rows;  // in execution order
  size_t npu_parts = 0, parts = 0;
  compile::Words words = compile::Words::tflite;  // of the model's format
  std::string advice;
  std::vector<passes::Rewrite> rewrites;
  uint64_t macs = 0;  // in the model
  NpuShare share;
  compile::ModelUse model;
  std::optional<ProgramTiming> simulated;          // predicted time with the NPU's parts; none: unknown
  bool may_divide = false;                         // --host-threads auto may give another partition
  double cpu_alone_us = -1;                        // predicted time of the CPU alone
  std::vector<sim::ParameterValue> measured = {};  // parameters measured on the device, used for the prediction
  // Operations of the model that stand on assumptions: those that this device has not confirmed, and those that it has.
  size_t to_verify = 0, verified = 0;
};

// The same for a device and for each chip.
runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = session_options(options.session);
  out.cores = 1;  // sharing an operation between cores does not change its place
  return out;
}

// Marks operations on assumptions that a job computes, if this device has tested all of them.
void mark_verified(const runtime::Target& target, const std::vector<bool>& works, compile::Compiled& compiled) {
  if (target.trust == nullptr) return;
  std::map<const npu::Assumption*, bool> known;
  const auto is_known = [&](const npu::Assumption* one) {
    const auto [at, is_new] = known.try_emplace(one, false);
    // A refuted assumption was tested too: the operation uses the NPU in another way. An assumption that cannot be
    // tested alone is covered by the others.
    if (is_new)
      at->second = target.trust->find(runtime::TrustKind::assumption, one->name).has_value() ||
                   !runtime::why_not_asked(target, *target.trust, *one).empty();
    return at->second;
  };
  for (size_t op = 0; op < compiled.ops.size(); ++op) {
    compile::OpPlace& place = compiled.ops[op];
    place.verified = !place.stands_on.empty() && works[op] && std::ranges::all_of(place.stands_on, is_known);
  }
}

// Counts operations that are compared before the first result, if the device keeps trust.
void count_verified(const runtime::Target& target, const compile::Compiled& compiled, Report& report) {
  if (target.trust == nullptr) return;
  std::map<int32_t, bool> is_verified;  // by operation of the model
  for (const Row& row : report.rows) {
    if (row.op.stands_on.empty() || !row.works) continue;
    const bool here = compiled.ops[static_cast<size_t>(row.op.op)].verified;
    const auto [at, is_new] = is_verified.emplace(compiled.graph.op(row.op.op).source_index, here);
    at->second &= here;
  }
  for (const auto& [source, is_right] : is_verified) ++(is_right ? report.verified : report.to_verify);
}

Result<Report> examine(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model, options.import_as));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  SK_TRY(runtime::check_tuning_file(target, options.session.tuning_file));
  const runtime::SessionOptions session = session_options(options);
  ModelWork work = work_of(graph, target.chip.name);
  const double cpu_us = target.driver == nullptr ? -1 : cpu_alone_us(target.chip.name, graph);
  const Progress progress(fmt::format("compiling for {}", target.name));
  auto made = runtime::compile_for(target, graph, session);
  outcome.begin_with(made);
  SK_TRY_ASSIGN(compile::Compiled compiled, std::move(made));
  const std::vector<bool> works = compile::works_on_npu(compiled);
  mark_verified(target, works, compiled);
  Report report{.device = target.name,
                .chip = target.chip.name,
                .rows = {},
                .npu_parts = 0,
                .parts = compiled.parts.size(),
                .words = words_of(options.model),
                .advice = compile::quantization_advice(
                    compiled.graph, {target.driver, target.chip, session.compile.per_channel}, words_of(options.model)),
                .rewrites = compiled.rewrites,
                .macs = work.all_macs(),
                .share = npu_share(work, compiled, target.chip.name),
                .model = compile::model_use(compiled),
                .simulated = {},
                .may_divide = may_divide_by_cores(session),
                .cpu_alone_us = cpu_us};
  std::vector<compile::OpRow> ops = compile::rows(compiled);
  if (target.driver != nullptr) add_cpu_times(target.chip.name, compiled.graph, ops);
  compile::mark_idle(works, ops);
  SK_TRY(host::advise_unproven(ops, compiled, target, graph, session));
  mark_nowhere(compiled.graph, ops);
  compile::put_in_words(report.words, ops);
  compile::put_in_words(report.words, report.rewrites);
  const std::vector<uint64_t> macs = compile::model_macs(compiled, std::move(work.macs));
  report.npu_parts = compile::npu_parts(compiled);
  for (const compile::Part& part : compiled.parts) {
    for (const ir::OpId op : part.partition.op_map) {
      const compile::OpRow& row = ops[static_cast<size_t>(op)];
      report.rows.push_back({.op = row,
                             .where = row.on_npu    ? "npu"
                                      : row.nowhere ? "nowhere"
                                                    : "cpu",
                             .works = works[static_cast<size_t>(op)],
                             .macs = macs[static_cast<size_t>(op)]});
    }
  }
  if (runtime::verifies(target, session)) count_verified(target, compiled, report);
  if (target.driver != nullptr) {
    report.measured = runtime::measured_parameters(target.chip, target.trust.get());
    SK_TRY_ASSIGN(report.simulated, time_if_known(target.chip.name, compiled, report.measured));
  }
  return report;
}

// Text: operations to verify on a device that may differ, and those confirmed.
std::string print_verified(const Report& report) {
  const std::string known =
      report.verified == 0
          ? ""
          : fmt::format("depend on what this device has confirmed (skillet trust): {} of these", report.verified);
  if (report.to_verify == 0) return known;
  return fmt::format("verified when first loaded on this device: {} of these; wrong ones stay on the CPU{}{}",
                     report.to_verify, known.empty() ? "" : "; ", known);
}

struct Totals {
  size_t npu = 0, cpu = 0, nowhere = 0;
  uint64_t npu_macs = 0;
};

Totals total(const Report& report) {
  Totals out;
  for (const Row& row : report.rows) {
    (row.works ? out.npu : row.where == "nowhere" ? out.nowhere : out.cpu) += 1;
    if (row.where == "npu") out.npu_macs += row.macs;
  }
  return out;
}

// Prints the main result, before the details.
void print_verdict(const Options& options, const Report& report) {
  const Totals sum = total(report);
  out("{} on {}\n", printable(options.model), report.device);
  out("{}\n", wrapped(fmt::format("{} on the NPU in {}: {}", compile::print(report.model),
                                  counted(report.npu_parts, "part"), report.share.print()),
                      2));
  if (const std::string line = print_verified(report); !line.empty()) out("{}\n", wrapped(line, 2));
  if (sum.nowhere != 0) out("{} can run nowhere\n", counted(sum.nowhere, "operation"));
  if (options.verbose)
    out("as compiled {} operations: {} on the NPU, {} on the CPU, {} nowhere; {} MACs\n", report.rows.size(), sum.npu,
        sum.cpu, sum.nowhere, print_count(report.macs));
  if (!report.simulated) return;
  const ProgramTiming& time = *report.simulated;
  if (report.npu_parts != 0)
    out("{}\n", wrapped(fmt::format("NPU{}: {}{}", on_cores(time.cores), print_simulated(time.device_us, time),
                                    print_whole(time)),
                        2));
  if (!report.measured.empty()) out("{}", print_measured(report.device, report.measured));
  out("{}\n", print_cpu_alone(report.chip, report.cpu_alone_us));
  const std::string faster = advise_cpu(report.chip, time.whole_us(), report.cpu_alone_us, report.may_divide);
  if (time.nowhere == 0 && sum.npu != 0 && !faster.empty()) out("{}\n", wrapped(faster, 2));
}

// Lists the assumptions that programs stand on, with the number of operations, most first.
std::string print_assumptions(const std::vector<Row>& rows, compile::Words words) {
  std::map<const npu::Assumption*, size_t> counts;
  for (const Row& row : rows)
    for (const npu::Assumption* one : row.op.stands_on) ++counts[one];
  std::vector<std::pair<const npu::Assumption*, size_t>> sorted(counts.begin(), counts.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first->name < b.first->name;
  });
  std::string out = sorted.empty() ? "" : "assumptions that no recorded job shows as a whole (--json: by operation)\n";
  for (const auto& [one, count] : sorted)
    out += wrapped(fmt::format("  {} ({}): {} [{}]", one->name, count, compile::in_words(words, std::string(one->what)),
                               one->sections),
                   4) +
           "\n";
  return out;
}

void print_text(const Options& options, const Report& report) {
  print_verdict(options, report);
  std::vector<compile::OpRow> rows;
  for (const Row& row : report.rows) rows.push_back(row.op);
  out("{}", print_advice(rows, report.model.ops, report.advice, report.words));
  if (!report.rewrites.empty()) {
    out("rewritten, with the same results unless a line says otherwise\n");
    for (const passes::Rewrite& one : report.rewrites) out("{}\n", wrapped(compile::print(one), 2));
  }
  TextTable table({"op", "kind", "output", "MACs", "part", "where", "reason"});
  for (const Row& row : report.rows)
    table.add({row.op.number, row.op.kind, row.op.output, row.macs ? print_count(row.macs) : "-",
               fmt::format("{}", row.op.part), row.where, compile::remarks(row.op)});
  out("\n{}", table.print_wrapped());
  out("{}", print_assumptions(report.rows, report.words));
}

void print_json(const Options& options, const Report& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : report.rows)
    rows.push_back({{"op", row.op.op},
                    {"source", row.op.source},
                    {"kind", row.op.kind},
                    {"output", row.op.output},
                    {"macs", row.macs},
                    {"part", row.op.part},
                    {"where", row.where},
                    {"reason", row.op.why},
                    {"remedy", row.where == "cpu" ? npu::remedy_name(row.op.remedy) : ""},
                    {"note", row.op.note},
                    {"unproven", row.op.unproven},
                    {"stands_on", npu::names_of(row.op.stands_on)}});
  const Totals sum = total(report);
  nlohmann::json report_json = {{"model", options.model},
                                {"device", report.device},
                                {"ops", rows},
                                {"parts", report.parts},
                                {"npu_parts", report.npu_parts},
                                {"npu_ops", sum.npu},
                                {"cpu_ops", sum.cpu},
                                {"nowhere_ops", sum.nowhere},
                                {"macs", report.macs},
                                {"npu_macs", sum.npu_macs},
                                {"percent_on_npu", report.share.percent()},
                                {"percent_of_macs", percent_or_null(report.share.macs)},
                                {"percent_of_cpu_time", percent_or_null(report.share.cpu_time)},
                                {"to_verify_ops", report.to_verify},
                                {"verified_ops", report.verified},
                                {"advice", report.advice}};
  add_json(report_json, report.model);
  if (report.simulated) {
    report_json["simulated"] = json_of(*report.simulated, report.measured);
    report_json["cpu_alone_ms"] = ms_or_null(report.cpu_alone_us);
  }
  out_report(std::move(report_json));
}

// Parses "90" or "90%"; none for "".
Result<std::optional<double>> required_percent(const std::string& text) {
  if (text.empty()) return std::optional<double>();
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (failure != std::errc() || !(value >= 0 && value <= 100) || (!rest.empty() && rest != "%"))
    return error(ErrorCode::invalid_argument, "--require: must be a percentage such as 90%, not '{}'", text);
  if (value > 0 && value < 1 && rest.empty())
    return error(ErrorCode::invalid_argument,
                 "--require: {} is less than one percent; write {:g}%, or {}% if you mean that", text, 100 * value,
                 text);
  return std::optional(value);
}

Result<void> check_required(const std::optional<double>& required, const NpuShare& share, const std::string& where) {
  if (!required || share.reaches(*required)) return {};
  return error(ErrorCode::unsupported, "{}: on the NPU: {}; --require needs {} %", where, share.print(), *required);
}

// An error with advice if an operation runs nowhere.
Result<void> check_runs(std::span<const compile::OpRow> rows, const std::string& where, compile::Words words) {
  std::vector<std::string> kinds;
  size_t ops = 0;
  for (const compile::OpRow& row : rows) {
    if (!row.nowhere) continue;
    ++ops;
    if (std::ranges::count(kinds, row.kind) == 0) kinds.push_back(row.kind);
  }
  if (ops == 0) return {};
  const bool is_onnx = words == compile::Words::onnx;
  return error(ErrorCode::unsupported, "{}: {} operation{} nowhere: {}; {} may run {} ({})", where, ops,
               ops == 1 ? " runs" : "s run", fmt::join(kinds, ", "), is_onnx ? "ONNX Runtime" : "a host",
               ops == 1 ? "it" : "them", is_onnx ? "docs/onnxruntime.md" : "check --delegate");
}

Result<void> check_each_chip(const Options& options, const std::optional<double>& required, Outcome& outcome) {
  if (options.delegate) SK_TRY(check_no_onnx(options.model, "check --delegate", ""));
  LeftToHost left;
  tflite::ImportOptions import_as = options.import_as;
  import_as.newer_fields = &left;
  import_as.as_hosts_have_it = options.delegate;
  SK_TRY_ASSIGN(const ir::Graph graph, import_model(options.model, import_as));
  if (!options.html.empty()) SK_TRY(check_place(options.html));
  runtime::SessionOptions session = session_options(options);
  SK_TRY_ASSIGN(session.tuning, runtime::tuning_file_for(std::exchange(session.tuning_file, ""), proven_chips()));
  if (options.delegate && is_too_free(graph, session))
    log::message(log::Level::warning, "{}: {}", graph.name, compile::kNothingPredicted);
  auto checked = check_chips(options.model, graph, session, options.delegate ? &left : nullptr);
  outcome.begin_with(checked);
  SK_TRY_ASSIGN(const ChipsReport report, std::move(checked));
  if (!options.html.empty()) {
    const std::string page = chips_html(report);
    SK_TRY(write_file(options.html, {reinterpret_cast<const uint8_t*>(page.data()), page.size()}));
  }
  out("{}", options.json ? chips_json_text(report) : print_chips(report));
  for (const ChipCheck& chip : report.chips) SK_TRY(check_required(required, chip.share, chip.chip.name));
  for (const ChipCheck& chip : report.chips) SK_TRY(check_runs(chip.rows, chip.chip.name, report.words));
  return {};
}

Result<void> check(Options options, Outcome& outcome) {
  // Not set as the option's own variable: --html and --delegate, which are for all chips, exclude --device.
  const char* const device = environment_variable(kDeviceVariable);
  if (device != nullptr && options.device.empty() && options.html.empty() && !options.delegate) options.device = device;
  if (options.verbose && options.device.empty())
    return error(ErrorCode::invalid_argument, "--verbose requires --device");
  SK_TRY(check_apart({{"MODEL", options.model}, {"--tuning-file", options.session.tuning_file}},
                     {{"--html", options.html}}));
  SK_TRY_ASSIGN(const std::optional<double> required, required_percent(options.require));
  if (options.device.empty()) return check_each_chip(options, required, outcome);
  SK_TRY_ASSIGN(const Report report, examine(options, outcome));
  if (options.json)
    print_json(options, report);
  else
    print_text(options, report);
  SK_TRY(check_required(required, report.share, report.device));
  std::vector<compile::OpRow> rows;
  for (const Row& row : report.rows) rows.push_back(row.op);
  return check_runs(rows, report.device, report.words);
}

}  // namespace

void add_check(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("check",
                             "Show which operations of a model run where, and why not on the NPU. Runs nothing.\n"
                             "Without --device or SKILLET_DEVICE: on each well-known chip; none is needed here.\n"
                             "Examples:\n"
                             "  skillet check models/digits.tflite\n"
                             "  skillet check models/digits.tflite --device sim:a311d --require 90%");
  verb.option("MODEL", options->model, kModelHelp).required();
  add_import(verb, options->import_as);
  const Option device = verb.option("--device", options->device, kDeviceHelp);
  verb.option("--require", options->require,
              "fail if less is on the NPU: of the multiply-accumulates, or of the CPU's time for the whole network");
  verb.option("--html", options->html, "write the same as an HTML page to this file")
      .check(not_empty())
      .excludes(device);
  add_unproven(verb, options->session);
  add_per_channel(verb, options->session);
  add_partition(verb, options->session);
  add_tuning_file(verb, options->session);
  verb.flag("--delegate", options->delegate,
            "what the TensorFlow Lite delegate gives to each NPU in a host program, see docs/delegate.md")
      .excludes(device);
  verb.flag("--verbose", options->verbose, "with --device: also count the operations after the passes");
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(check(*options, outcome)); });
}

}  // namespace skillet::tools
