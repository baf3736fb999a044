// `skillet check`: which operations of a model run where, and why not on the NPU.
#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "compile/advice.h"
#include "ref/ref.h"
#include "runtime/session.h"
#include "runtime/tuned_driver.h"
#include "tools/apart.h"
#include "tools/check_chips.h"
#include "tools/delegate_claims.h"
#include "tools/input_flags.h"
#include "tools/model.h"
#include "tools/print_advice.h"
#include "tools/program_timing.h"
#include "tools/progress.h"
#include "tools/session_flags.h"
#include "tools/text_table.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, device, require, html;  // no device: each chip
  tflite::ImportOptions import_as;
  SessionFlags session;
  bool json = false, delegate = false;
};

struct Row {
  compile::OpRow op;
  std::string where;
  uint64_t macs = 0;
};

struct Report {
  std::string device;
  std::vector<Row> rows;  // in execution order
  size_t npu_parts = 0, parts = 0;
  std::string advice;
  std::vector<passes::Rewrite> rewrites;
  uint64_t macs = 0;  // of the model
  compile::ModelUse model;
  std::optional<ProgramTiming> simulated;  // what the NPU's parts would take, where that is known
  double cpu_alone_us = -1;                // what the CPU would without them
};

// Of a device and of each chip alike.
runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = session_options(options.session);
  out.cores = 1;  // how many share the work changes nothing about where
  return out;
}

Result<Report> examine(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model, options.import_as));
  std::vector<uint64_t> model_macs = macs_of(graph);
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  SK_TRY(runtime::check_tuning_file(target, options.session.tuning_file));
  const runtime::SessionOptions session = session_options(options);
  const double cpu_us = target.driver == nullptr ? -1 : cpu_alone_us(target.chip.name, graph);
  const Progress progress(fmt::format("compiling for {}", target.name));
  auto made = runtime::compile_for(target, std::move(graph), session);
  outcome.begin_with(made);
  SK_TRY_ASSIGN(const compile::Compiled compiled, std::move(made));
  Report report{
      .device = target.name,
      .rows = {},
      .npu_parts = 0,
      .parts = compiled.parts.size(),
      .advice = compile::quantization_advice(compiled.graph, {target.driver, target.chip, session.compile.per_channel}),
      .rewrites = compiled.rewrites,
      .macs = std::accumulate(model_macs.begin(), model_macs.end(), uint64_t{0}),
      .model = compile::model_use(compiled),
      .simulated = {},
      .cpu_alone_us = cpu_us};
  std::vector<compile::OpRow> ops = compile::rows(compiled);
  if (target.driver != nullptr) add_cpu_times(target.chip.name, compiled.graph, ops);
  mark_nowhere(compiled.graph, ops);
  const std::vector<uint64_t> macs = compile::model_macs(compiled, std::move(model_macs));
  for (const compile::Part& part : compiled.parts) {
    report.npu_parts += part.partition.on_npu ? 1 : 0;
    for (const ir::OpId op : part.partition.op_map) {
      const compile::OpRow& row = ops[static_cast<size_t>(op)];
      report.rows.push_back({.op = row,
                             .where = row.on_npu    ? "npu"
                                      : row.nowhere ? "nowhere"
                                                    : "cpu",
                             .macs = macs[static_cast<size_t>(op)]});
    }
  }
  if (target.driver != nullptr) {
    SK_TRY_ASSIGN(report.simulated, time_if_known(target.chip.name, compiled));
  }
  return report;
}

struct Totals {
  size_t npu = 0, cpu = 0, nowhere = 0;
  uint64_t npu_macs = 0;
};

Totals total(const Report& report) {
  Totals out;
  for (const Row& row : report.rows) {
    (row.where == "npu" ? out.npu : row.where == "cpu" ? out.cpu : out.nowhere) += 1;
    if (row.where == "npu") out.npu_macs += row.macs;
  }
  return out;
}

// Of the multiply-accumulates; of the operations where there are none.
double percent_on_npu(const Report& report) { return share_on_npu(report.macs, total(report).npu_macs, report.model); }

// What programs rest on, most operations first.
std::string print_assumptions(const std::vector<Row>& rows) {
  std::map<const driver::Assumption*, size_t> counts;
  for (const Row& row : rows)
    for (const driver::Assumption* one : row.op.stands_on) ++counts[one];
  std::vector<std::pair<const driver::Assumption*, size_t>> sorted(counts.begin(), counts.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first->name < b.first->name;
  });
  std::string out = sorted.empty() ? "" : "stands on what no recorded job shows as a whole (--json: by operation)\n";
  for (const auto& [one, count] : sorted)
    out += fmt::format("  {} ({}): {} [{}]\n", one->name, count, one->what, one->sections);
  return out;
}

void print_text(const Options& options, const Report& report) {
  TextTable table({"op", "kind", "output", "MACs", "part", "where", "reason"});
  for (const Row& row : report.rows)
    table.add({fmt::format("{}", row.op.op), row.op.kind, row.op.output, row.macs ? print_count(row.macs) : "-",
               fmt::format("{}", row.op.part), row.where, compile::remarks(row.op)});
  out("{} on {}\n\n{}\n", printable(options.model), report.device, table.print());
  const Totals sum = total(report);
  out("{} on the NPU in {} part(s); {} MACs, {} on the NPU\n", print_use(report.model), report.npu_parts,
      print_count(report.macs), print_share(report.macs, percent_on_npu(report), "them"));
  if (!report.rewrites.empty() || sum.nowhere != 0) {
    out("as compiled {} operations: {} on the NPU, {} on the CPU", report.rows.size(), sum.npu, sum.cpu);
    out("{}\n", sum.nowhere != 0 ? fmt::format(", {} nowhere", sum.nowhere) : "");
  }
  if (report.simulated) {
    out("NPU{}: {}{}\n", on_cores(report.simulated->cores),
        print_simulated(report.simulated->device_us, report.simulated->error), print_whole(*report.simulated));
    out("CPU alone: {}\n", print_time_or_none(report.cpu_alone_us));
    const std::string faster = advise_cpu(report.simulated->whole_us(), report.cpu_alone_us);
    if (report.simulated->nowhere == 0 && sum.npu != 0 && !faster.empty()) out("{}\n", faster);
  }
  if (!report.rewrites.empty()) out("rewritten, each with the same results\n{}", compile::print(report.rewrites));
  std::vector<compile::OpRow> rows;
  for (const Row& row : report.rows) rows.push_back(row.op);
  out("{}", print_advice(rows, report.advice));
  out("{}", print_assumptions(report.rows));
}

std::vector<std::string_view> names_of(const std::vector<const driver::Assumption*>& assumptions) {
  std::vector<std::string_view> out;
  for (const driver::Assumption* one : assumptions) out.push_back(one->name);
  return out;
}

void print_json(const Options& options, const Report& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : report.rows)
    rows.push_back({{"op", row.op.op},
                    {"kind", row.op.kind},
                    {"output", row.op.output},
                    {"macs", row.macs},
                    {"part", row.op.part},
                    {"where", row.where},
                    {"reason", row.op.why},
                    {"remedy", row.where == "cpu" ? driver::remedy_name(row.op.remedy) : ""},
                    {"note", row.op.note},
                    {"unproven", row.op.unproven},
                    {"stands_on", names_of(row.op.stands_on)}});
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
                                {"advice", report.advice},
                                {"model_npu_ops", report.model.npu_ops},
                                {"model_ops", report.model.ops},
                                {"model_part_ops", report.model.part_ops}};
  if (report.simulated) {
    report_json["simulated"] = json_of(*report.simulated);
    report_json["cpu_alone_ms"] = ms_or_null(report.cpu_alone_us);
  }
  out_json(report_json);
}

// "90", "90%"; nothing for "".
Result<std::optional<double>> required_percent(const std::string& text) {
  if (text.empty()) return std::optional<double>();
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (failure != std::errc() || !(value >= 0 && value <= 100) || (!rest.empty() && rest != "%"))
    return error(ErrorCode::invalid_argument, "--require: must be a percentage such as 90%, not '{}'", text);
  if (value > 0 && value < 1 && rest.empty())
    return error(ErrorCode::invalid_argument,
                 "--require: {} is less than one percent; write {:g}%, or {}% if that is meant", text, 100 * value,
                 text);
  return std::optional(value);
}

Result<void> check_required(const std::optional<double>& required, double percent, uint64_t macs,
                            const std::string& where) {
  if (!required || percent >= *required) return {};
  return error(ErrorCode::unsupported, "{}: {} is on the NPU; --require asks for {}", where,
               print_share(macs, percent, "the work"), *required);
}

Result<void> check_each_chip(const Options& options, const std::optional<double>& required, Outcome& outcome) {
  SK_TRY_ASSIGN(const ir::Graph graph, import_model(options.model, options.import_as));
  if (!options.html.empty()) SK_TRY(check_place(options.html));
  runtime::SessionOptions session = session_options(options);
  SK_TRY_ASSIGN(session.tuning, runtime::tuning_file_for(std::exchange(session.tuning_file, ""), proven_chips()));
  if (options.delegate && is_too_free(graph, session))
    log::message(log::Level::warning, "{}: {}", graph.name, compile::kNothingPredicted);
  auto checked = check_chips(options.model, graph, session, options.delegate);
  outcome.begin_with(checked);
  SK_TRY_ASSIGN(const ChipsReport report, std::move(checked));
  if (!options.html.empty()) {
    const std::string page = chips_html(report);
    SK_TRY(write_file(options.html, {reinterpret_cast<const uint8_t*>(page.data()), page.size()}));
  }
  out("{}", options.json ? chips_json_text(report) : print_chips(report));
  if (report.has_op_nowhere()) outcome.exit_code = kFailed;
  for (const ChipCheck& chip : report.chips)
    SK_TRY(check_required(required, report.percent_on_npu(chip), report.macs, chip.chip.name));
  return {};
}

Result<void> check(const Options& options, Outcome& outcome) {
  SK_TRY(check_apart({{"MODEL", options.model}, {"--tuning-file", options.session.tuning_file}},
                     {{"--html", options.html}}));
  SK_TRY_ASSIGN(const std::optional<double> required, required_percent(options.require));
  if (options.device.empty()) return check_each_chip(options, required, outcome);
  SK_TRY_ASSIGN(const Report report, examine(options, outcome));
  if (options.json)
    print_json(options, report);
  else
    print_text(options, report);
  const Totals sum = total(report);
  outcome.exit_code = sum.nowhere == 0 ? kFine : kFailed;
  return check_required(required, percent_on_npu(report), report.macs, report.device);
}

}  // namespace

void add_check(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("check",
                             "Show which operations of a model run where, and why not on the NPU. Runs nothing.\n"
                             "Without --device: on each chip that is known well; needs none here.\n"
                             "Examples:\n"
                             "  skillet check models/digits.tflite\n"
                             "  skillet check models/digits.tflite --device sim:a311d --require 90%");
  verb.option("MODEL", options->model, "a .tflite file").required();
  add_import(verb, options->import_as);
  const Option device = verb.option("--device", options->device, kDeviceHelp);
  verb.option(
      "--require", options->require,
      "fail when less of the work is on the NPU: of the multiply-accumulates; of the operations where there are none");
  verb.option("--html", options->html, "write a page with the same to this file").check(not_empty()).excludes(device);
  add_allow_unproven(verb, options->session);
  add_per_channel(verb, options->session);
  add_partition(verb, options->session);
  add_tuning_file(verb, options->session);
  verb.flag("--delegate", options->delegate,
            "what a program that loads the TensorFlow Lite delegate gives to each NPU by default: less, see "
            "docs/delegate.md")
      .excludes(device);
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(check(*options, outcome)); });
}

}  // namespace skillet::tools
