// `skillet check`: which operations of a model run where, and why not on the NPU.
#include <nlohmann/json.hpp>

#include "compile/advice.h"
#include "ir/macs.h"
#include "ref/ref.h"
#include "runtime/session.h"
#include "tools/model.h"
#include "tools/print_advice.h"
#include "tools/progress.h"
#include "tools/text_table.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, device = "auto";
  bool json = false, allow_unproven = false;
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
};

// Where an op runs that the NPU does not take: on the CPU, or nowhere when there is no kernel for it.
void place_on_cpu(const ir::Graph& graph, Row& row) {
  const auto kernel = ref::prepare(graph, row.op.op);
  row.where = kernel.ok() ? "cpu" : "nowhere";
  if (!kernel.ok()) row.op.why += (row.op.why.empty() ? "" : "; ") + kernel.error().message;
}

Result<Report> examine(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  runtime::SessionOptions session;
  session.compile.allow_unproven = options.allow_unproven;
  session.cores = 1;  // how many share the work changes nothing about where
  outcome.begin();
  const Progress progress(fmt::format("compiling for {}", target.name));
  SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, std::move(graph), session));
  Report report{.device = target.name,
                .rows = {},
                .npu_parts = 0,
                .parts = compiled.parts.size(),
                .advice = compile::quantization_advice(compiled.graph, {target.driver, target.chip})};
  const std::vector<compile::OpRow> ops = compile::rows(compiled);
  for (const compile::Part& part : compiled.parts) {
    report.npu_parts += part.partition.on_npu ? 1 : 0;
    for (const ir::OpId op : part.partition.op_map) {
      Row row{.op = ops[static_cast<size_t>(op)], .where = "npu", .macs = ir::op_macs(compiled.graph, op)};
      if (!row.op.on_npu) place_on_cpu(compiled.graph, row);
      report.rows.push_back(std::move(row));
    }
  }
  return report;
}

struct Totals {
  size_t npu = 0, cpu = 0, nowhere = 0;
  uint64_t macs = 0, npu_macs = 0;
};

Totals total(const Report& report) {
  Totals out;
  for (const Row& row : report.rows) {
    (row.where == "npu" ? out.npu : row.where == "cpu" ? out.cpu : out.nowhere) += 1;
    out.macs += row.macs;
    if (row.where == "npu") out.npu_macs += row.macs;
  }
  return out;
}

void print_text(const Options& options, const Report& report) {
  TextTable table({"op", "kind", "output", "MACs", "part", "where", "reason"});
  for (const Row& row : report.rows)
    table.add({fmt::format("{}", row.op.op), row.op.kind, row.op.output, row.macs ? print_count(row.macs) : "-",
               fmt::format("{}", row.op.part), row.where, compile::without_names(row.op.why)});
  out("{} on {}\n\n{}\n", options.model, report.device, table.print());
  const Totals sum = total(report);
  const double share = sum.macs ? 100.0 * static_cast<double>(sum.npu_macs) / static_cast<double>(sum.macs) : 0;
  out("{} operations: {} on the NPU in {} part(s), {} on the CPU", report.rows.size(), sum.npu, report.npu_parts,
      sum.cpu);
  if (sum.nowhere) out(", {} nowhere", sum.nowhere);
  out("; {} MACs, {:.1f} % of them on the NPU\n", print_count(sum.macs), share);
  std::vector<compile::OpRow> rows;
  for (const Row& row : report.rows) rows.push_back(row.op);
  out("{}", print_advice(rows, report.advice));
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
                    {"unproven", row.op.unproven}});
  const Totals sum = total(report);
  const nlohmann::json report_json = {{"model", options.model},   {"device", report.device},       {"ops", rows},
                                      {"parts", report.parts},    {"npu_parts", report.npu_parts}, {"npu_ops", sum.npu},
                                      {"cpu_ops", sum.cpu},       {"nowhere_ops", sum.nowhere},    {"macs", sum.macs},
                                      {"npu_macs", sum.npu_macs}, {"advice", report.advice}};
  out_json(report_json);
}

Result<void> check(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const Report report, examine(options, outcome));
  if (options.json)
    print_json(options, report);
  else
    print_text(options, report);
  outcome.exit_code = total(report).nowhere == 0 ? kFine : kFailed;
  return {};
}

}  // namespace

void add_check(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("check",
                         "Show which operations of a model run where, and why not on the NPU. Runs nothing.\n"
                         "Example: skillet check models/digits.tflite --device sim:a311d");
  verb->add_option("MODEL", options->model, "a .tflite file")->required();
  verb->add_option("--device", options->device, kDeviceHelp)->capture_default_str();
  verb->add_flag("--allow-unproven", options->allow_unproven, kAllowUnprovenHelp)->envname(kAllowUnprovenVariable);
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->callback([options, &outcome] { outcome.finish(check(*options, outcome)); });
}

}  // namespace skillet::tools
