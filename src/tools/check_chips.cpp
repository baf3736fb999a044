#include "tools/check_chips.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compile/advice.h"
#include "compile/compile.h"
#include "ir/macs.h"
#include "ref/ref.h"
#include "tools/output.h"
#include "tools/print_advice.h"
#include "tools/text_table.h"

namespace skillet::tools {
namespace {

std::string where_on_cpu(const ir::Graph& graph, ir::OpId op, std::string& why) {
  const auto kernel = ref::prepare(graph, op);
  if (kernel.ok()) return "cpu";
  why += (why.empty() ? "" : "; ") + kernel.error().message;
  return "nowhere";
}

// One operation after the passes, told of the model's operation that it comes from.
void add_place(ChipCheck& out, const compile::Compiled& compiled, const compile::OpRow& row) {
  const int32_t source = compiled.graph.op(row.op).source_index;
  if (source < 0 || static_cast<size_t>(source) >= out.where.size()) return;
  const auto at = static_cast<size_t>(source);
  std::string why = row.why;
  const std::string where = row.on_npu ? "npu" : where_on_cpu(compiled.graph, row.op, why);
  std::string& known = out.where[at];
  known = known == "folded" || known == where ? where : "both";
  if (!why.empty() && out.why[at].empty()) out.why[at] = compile::without_names(why);
}

Result<ChipCheck> check_chip(const driver::Driver& driver, const driver::Chip& chip, const ir::Graph& graph,
                             const ChipsReport& report, bool allow_unproven) {
  compile::Options options;
  options.driver.allow_unproven = allow_unproven;
  const compile::Target target{&driver, chip};
  SK_TRY_ASSIGN(const compile::Compiled compiled, compile::compile(graph, target, options));
  ChipCheck out{.chip = chip, .where = {}, .why = {}, .rows = compile::rows(compiled)};
  out.where.assign(report.ops.size(), "folded");
  out.why.assign(report.ops.size(), "");
  for (const compile::OpRow& row : out.rows) add_place(out, compiled, row);
  for (size_t i = 0; i < report.ops.size(); ++i) {
    if (out.where[i] != "npu") continue;
    ++out.npu_ops;
    out.npu_macs += report.ops[i].macs;
  }
  for (const compile::Part& part : compiled.parts) out.npu_parts += part.partition.on_npu ? 1 : 0;
  out.advice = compile::quantization_advice(compiled.graph, target);
  return out;
}

}  // namespace

double ChipsReport::percent_on_npu(const ChipCheck& chip) const {
  if (macs > 0) return 100.0 * static_cast<double>(chip.npu_macs) / static_cast<double>(macs);
  return ops.empty() ? 0 : 100.0 * static_cast<double>(chip.npu_ops) / static_cast<double>(ops.size());
}

bool ChipsReport::has_op_nowhere() const {
  return std::ranges::any_of(
      chips, [](const ChipCheck& chip) { return std::ranges::find(chip.where, "nowhere") != chip.where.end(); });
}

Result<ChipsReport> check_chips(const std::string& model, const ir::Graph& graph, bool allow_unproven) {
  ChipsReport out{.model = model, .ops = {}, .macs = 0, .chips = {}};
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    out.ops.push_back({std::string(ir::op_name(op)),
                       op.outputs.empty() ? "" : graph.tensor(op.outputs[0]).shape.to_string(),
                       ir::op_macs(graph, static_cast<ir::OpId>(i))});
    out.macs += out.ops.back().macs;
  }
  for (const driver::Driver* driver : driver::drivers()) {
    for (const driver::Chip& chip : driver->chips()) {
      if (!chip.unproven.empty()) continue;
      auto checked = check_chip(*driver, chip, graph, out, allow_unproven);
      if (!checked.ok()) return std::move(checked).error().with_context(chip.name);
      out.chips.push_back(std::move(checked).value());
    }
  }
  return out;
}

std::string print_chips(const ChipsReport& report) {
  std::vector<std::string> header = {"op", "kind", "output", "MACs"};
  for (const ChipCheck& chip : report.chips) header.push_back(chip.chip.name);
  TextTable table(std::move(header));
  for (size_t i = 0; i < report.ops.size(); ++i) {
    const ModelOp& op = report.ops[i];
    std::vector<std::string> row = {fmt::format("{}", i), op.kind, op.output, op.macs ? print_count(op.macs) : "-"};
    for (const ChipCheck& chip : report.chips) row.push_back(chip.where[i]);
    table.add(std::move(row));
  }
  std::string out = fmt::format("{}\n\n{}", report.model, table.print());
  for (const ChipCheck& chip : report.chips) {
    out +=
        fmt::format("\n{} ({}): {} of {} operations on the NPU in {} part(s), {:.1f} % of the MACs\n", chip.chip.name,
                    chip.chip.title, chip.npu_ops, report.ops.size(), chip.npu_parts, report.percent_on_npu(chip));
    out += print_advice(chip.rows, chip.advice);
  }
  return out;
}

std::string chips_json_text(const ChipsReport& report) {
  nlohmann::json ops = nlohmann::json::array(), chips = nlohmann::json::array();
  for (const ModelOp& op : report.ops) ops.push_back({{"kind", op.kind}, {"output", op.output}, {"macs", op.macs}});
  for (const ChipCheck& chip : report.chips) {
    nlohmann::json reasons = nlohmann::json::array();
    for (const compile::ReasonGroup& group : compile::group_reasons(chip.rows))
      reasons.push_back({{"reason", group.reason}, {"ops", group.ops}});
    chips.push_back({{"chip", chip.chip.name},
                     {"title", chip.chip.title},
                     {"where", chip.where},
                     {"why", chip.why},
                     {"npu_ops", chip.npu_ops},
                     {"npu_parts", chip.npu_parts},
                     {"npu_macs", chip.npu_macs},
                     {"percent_on_npu", report.percent_on_npu(chip)},
                     {"reasons", reasons},
                     {"advice", chip.advice}});
  }
  return json_text({{"model", report.model}, {"macs", report.macs}, {"ops", ops}, {"chips", chips}});
}

}  // namespace skillet::tools
