// `skillet check`: which operations of a model run where, and why not on the NPU.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "passes/passes.h"
#include "ref/ref.h"
#include "runtime/device_context.h"
#include "tools/model.h"
#include "tools/text_table.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, device = "auto";
  bool json = false;
};

struct Row {
  ir::OpId op = 0;
  int part = 0;
  std::string kind, output, where, reason;
  uint64_t macs = 0;
};

struct Report {
  std::string device;
  std::vector<Row> rows;  // in execution order
  size_t npu_parts = 0, parts = 0;
};

// Where an op runs that the NPU does not take: on the CPU, or nowhere when there is no kernel for it.
void place_on_cpu(const ir::Graph& graph, Row& row) {
  const auto kernel = ref::prepare(graph, row.op);
  row.where = kernel.ok() ? "cpu" : "nowhere";
  if (!kernel.ok()) row.reason += (row.reason.empty() ? "" : "; ") + kernel.error().message;
}

Result<Report> examine(const Options& options) {
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  SK_TRY(passes::run_pipeline(graph));
  const passes::Partitioning split = passes::partition(graph, target.driver, target.chip);
  Report report{.device = target.name, .rows = {}, .npu_parts = 0, .parts = split.parts.size()};
  for (size_t part = 0; part < split.parts.size(); ++part) {
    report.npu_parts += split.parts[part].on_npu ? 1 : 0;
    for (const ir::OpId op : split.parts[part].op_map) {
      const auto& support = split.support[static_cast<size_t>(op)];
      Row row{.op = op,
              .part = static_cast<int>(part),
              .kind = std::string(ir::op_name(graph.op(op))),
              .output = output_shape(graph, op),
              .where = "npu",
              .reason = target.driver ? support.reason : "",
              .macs = op_macs(graph, op)};
      if (!split.parts[part].on_npu) place_on_cpu(graph, row);
      if (split.parts[part].on_npu && support.unproven) row.reason = "unproven: " + support.reason;
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
    table.add({fmt::format("{}", row.op), row.kind, row.output, row.macs ? print_count(row.macs) : "-",
               fmt::format("{}", row.part), row.where, row.reason});
  fmt::print("{} on {}\n\n{}\n", options.model, report.device, table.print());
  const Totals sum = total(report);
  const double share = sum.macs ? 100.0 * static_cast<double>(sum.npu_macs) / static_cast<double>(sum.macs) : 0;
  fmt::print("{} operations: {} on the NPU in {} part(s), {} on the CPU", report.rows.size(), sum.npu, report.npu_parts,
             sum.cpu);
  if (sum.nowhere) fmt::print(", {} nowhere", sum.nowhere);
  fmt::print("; {} MACs, {:.1f} % of them on the NPU\n", print_count(sum.macs), share);
}

void print_json(const Options& options, const Report& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : report.rows)
    rows.push_back({{"op", row.op},
                    {"kind", row.kind},
                    {"output", row.output},
                    {"macs", row.macs},
                    {"part", row.part},
                    {"where", row.where},
                    {"reason", row.reason}});
  const Totals sum = total(report);
  const nlohmann::json out = {{"model", options.model},  {"device", report.device},       {"ops", rows},
                              {"parts", report.parts},   {"npu_parts", report.npu_parts}, {"npu_ops", sum.npu},
                              {"cpu_ops", sum.cpu},      {"nowhere_ops", sum.nowhere},    {"macs", sum.macs},
                              {"npu_macs", sum.npu_macs}};
  fmt::print("{}\n", out.dump(2));
}

Result<void> check(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const Report report, examine(options));
  if (options.json)
    print_json(options, report);
  else
    print_text(options, report);
  outcome.exit_code = total(report).nowhere == 0 ? 0 : 1;
  return {};
}

}  // namespace

void add_check(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("check",
                         "Show which operations of a model run where, and why not on the NPU. Runs nothing.\n"
                         "Exit code 1 when an operation can run nowhere.\n"
                         "Example: skillet check models/digits.tflite --device sim:a311d");
  verb->add_option("MODEL", options->model, "a .tflite file")->required();
  verb->add_option("--device", options->device, kDeviceHelp)->capture_default_str();
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->callback([options, &outcome] { outcome.finish(check(*options, outcome)); });
}

}  // namespace skillet::tools
