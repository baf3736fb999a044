#include "tools/model/check_chips.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "compile/advice.h"
#include "frontend/host/choice.h"
#include "graph/ir/macs.h"
#include "graph/ref/ref.h"
#include "npu/steps_off.h"
#include "tools/model/model.h"
#include "tools/model/model_ops.h"
#include "tools/show/output.h"
#include "tools/show/print_advice.h"
#include "tools/show/text_table.h"
#include "tools/time/npu_use.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

// Maximum difference between an operation's result on the NPU and on the CPU, for the same inputs.
int steps_of(const runtime::Target& target, const compile::Compiled& compiled, const compile::OpRow& row) {
  if (!row.on_npu) return 0;
  int steps = npu::steps_off(*target.driver, target.chip, compiled.graph, row.op);
  for (const passes::WeightChange& change : compiled.weight_changes)
    if (change.op == row.op) steps = std::max(steps, change.worst);
  return steps;
}

// Records an operation after the passes for the model's operation that it comes from.
void add_place(ChipCheck& out, const runtime::Target& target, const compile::Compiled& compiled,
               const compile::OpRow& row) {
  const int32_t source = compiled.graph.op(row.op).source_index;
  if (source < 0 || static_cast<size_t>(source) >= out.where.size()) return;
  const auto at = static_cast<size_t>(source);
  const std::string where = row.on_npu ? "npu" : row.nowhere ? "nowhere" : "cpu";
  std::string& known = out.where[at];
  known = known == "folded" || known == where ? where : "both";
  if (!row.why.empty() && out.why[at].empty()) out.why[at] = row.plain;
  if (where != "nowhere") out.steps[at] = std::max(out.steps[at], steps_of(target, compiled, row));
}

// The operation after the passes for each device operation, part by part; -1: added by the compiler.
std::vector<ir::OpId> device_ops(const npu::HardwareRows& rows, const compile::Compiled& compiled) {
  std::vector<ir::OpId> ops;
  for (const compile::Part& part : compiled.parts) {
    if (!part.program || part.program->jobs.empty()) continue;
    for (const ir::OpId own : executed_ops(*part.program, rows))
      ops.push_back(own < 0 ? -1 : part.partition.op_map[static_cast<size_t>(own)]);
  }
  return ops;
}

// Adds times by operation of the model. If device operations cannot be identified, only the total is known.
Result<void> add_times(ChipCheck& out, const npu::Driver& driver, const compile::Compiled& compiled) {
  SK_TRY_ASSIGN(const std::optional<ProgramTiming> timing, time_if_known(out.chip.name, compiled));
  if (!timing) return {};
  const auto us_of = [&](ir::OpId op) -> double* {
    const int32_t source = op < 0 ? -1 : compiled.graph.op(op).source_index;
    return source < 0 || static_cast<size_t>(source) >= out.us.size() ? nullptr : &out.us[static_cast<size_t>(source)];
  };
  const std::vector<ir::OpId> ops = device_ops(driver.hardware_rows(out.chip), compiled);
  const bool is_told = ops.size() == timing->costs.size();
  if (timing->nowhere == 0) out.wall_us = timing->whole_us();
  out.time_error = timing->error;
  out.clock = timing->clock;
  out.cores = timing->cores;
  for (const compile::OpRow& row : out.rows) {
    double* const us = us_of(row.op);
    if (us == nullptr || (row.on_npu && !is_told)) continue;
    *us = row.on_npu ? 0 : row.cpu_us;
  }
  for (size_t i = 0; is_told && i < ops.size(); ++i) {
    double* const us = us_of(ops[i]);
    (us == nullptr ? out.layout_us : *us) += timing->costs[i].us;
  }
  return {};
}

// Finds the producers of each operation's inputs.
void add_edges(const ir::Graph& graph, std::vector<ModelOp>& ops) {
  std::map<ir::TensorId, size_t> maker;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    for (const ir::TensorId input : graph.ops[i].inputs)
      if (const auto at = maker.find(input); at != maker.end()) ops[i].from.push_back(at->second);
    for (const ir::TensorId output : graph.ops[i].outputs) maker[output] = i;
  }
}

nlohmann::json steps_json(const ChipCheck& chip) {
  nlohmann::json out = nlohmann::json::array();
  for (const int steps : chip.steps) out.push_back(steps_text(steps));
  return out;
}

nlohmann::json us_json(const ChipCheck& chip) {
  nlohmann::json out = nlohmann::json::array();
  for (const double us : chip.us) out.push_back(us < 0 ? nlohmann::json() : nlohmann::json(us));
  return out;
}

Result<ChipCheck> check_chip(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph,
                             const ChipsReport& report, runtime::SessionOptions session) {
  const runtime::Target target{.name = chip.name, .chip = chip, .driver = &driver};
  SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, graph, session));
  ChipCheck out{.chip = chip, .where = {}, .why = {}, .rows = compile::rows(compiled)};
  out.where.assign(report.ops.size(), "folded");
  out.why.assign(report.ops.size(), "");
  out.steps.assign(report.ops.size(), -1);
  out.us.assign(report.ops.size(), -1);
  compile::mark_idle(compile::works_on_npu(compiled), out.rows);
  add_cpu_times(chip.name, compiled.graph, out.rows);
  mark_nowhere(compiled.graph, out.rows);
  out.advice = compile::quantization_advice(compiled.graph, {&driver, chip, session.compile.per_channel}, report.words);
  SK_TRY(host::advise_unproven(out.rows, compiled, target, graph, session));
  compile::put_in_words(report.words, out.rows);
  for (const compile::OpRow& row : out.rows) add_place(out, target, compiled, row);
  for (const auto& [gone, now] : compile::absorbed_by(compiled.rewrites)) {
    const auto from = static_cast<size_t>(now), to = static_cast<size_t>(gone);
    if (from < out.where.size() && to < out.where.size() && out.where[to] == "folded") out.where[to] = out.where[from];
  }
  SK_TRY(add_times(out, driver, compiled));
  out.cpu_alone_us = cpu_alone_us(chip.name, graph);
  const std::vector<uint64_t> macs = compile::model_macs(compiled, macs_of(graph));
  for (size_t i = 0; i < macs.size(); ++i) out.npu_macs += compiled.ops[i].on_npu ? macs[i] : 0;
  out.share = npu_share(work_of(graph, chip.name), compiled, chip.name);
  out.use = compile::model_use(compiled);
  out.npu_parts = compile::npu_parts(compiled);
  return out;
}

// The reason for operations that the delegate claims for its own CPU kernels.
constexpr std::string_view kOurs = "skillet's CPU kernels compute it, for the NPU to read";

// The same for the model's own operations, as the delegate claims them. The host runs the others.
Result<ChipCheck> check_delegate(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph,
                                 const ChipsReport& report, runtime::SessionOptions session, const LeftToHost& left) {
  const runtime::Target target{.name = chip.name, .chip = chip, .driver = &driver};
  SK_TRY_ASSIGN(const DelegateClaims claims, delegate_claims(target, graph, session, left));
  ChipCheck out{.chip = chip, .where = {}, .why = {}, .us = std::vector<double>(report.ops.size(), -1)};
  for (size_t i = 0; i < report.ops.size(); ++i) {
    const bool is_ours = !claims.on_cpu[i].empty(), on_npu = claims.is_on_npu(i);
    const std::string why = is_ours ? fmt::format("{} ({})", claims.on_cpu[i], kOurs) : claims.why_not[i];
    out.where.push_back(on_npu ? "npu" : "cpu");
    out.why.push_back(compile::without_names(why, graph, static_cast<ir::OpId>(i)));
    out.steps.push_back(on_npu ? npu::steps_off(driver, chip, graph, static_cast<ir::OpId>(i)) : 0);
    out.rows.push_back({.op = static_cast<ir::OpId>(i),
                        .kind = report.ops[i].kind,
                        .output = report.ops[i].output,
                        .on_npu = on_npu,
                        .why = why,
                        .plain = out.why.back(),
                        .remedy = claims.remedies[i]});
    if (on_npu) ++(claims.is_folded[i] ? out.use.folded_ops : out.use.npu_ops);
    out.npu_macs += on_npu ? report.ops[i].macs : 0;
  }
  std::vector<bool> claimed;
  for (size_t i = 0; i < claims.why_not.size(); ++i) claimed.push_back(claims.is_on_npu(i));
  out.share = npu_share(work_of(graph, chip.name), claimed);
  out.use.ops = report.ops.size();
  out.npu_parts = claims.partitions;
  out.cpu_alone_us = cpu_alone_us(chip.name, graph);
  out.advice = compile::quantization_advice(graph, {&driver, chip, session.compile.per_channel}, report.words,
                                            compile::Rest::in_the_host);
  return out;
}

}  // namespace

std::vector<uint64_t> macs_of(const ir::Graph& graph) {
  std::vector<uint64_t> out;
  for (size_t i = 0; i < graph.ops.size(); ++i) out.push_back(ir::op_macs(graph, static_cast<ir::OpId>(i)));
  return out;
}

std::string steps_text(int steps) {
  if (steps < 0) return "";
  return steps == 0 ? "0" : fmt::format("up to {}", steps);
}

std::vector<npu::Chip> proven_chips() {
  std::vector<npu::Chip> out;
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips())
      if (chip.unproven.empty() && chip.is_sold) out.push_back(chip);
  }
  return out;
}

Result<ChipsReport> check_chips(const std::string& model, const ir::Graph& graph,
                                const runtime::SessionOptions& session, const LeftToHost* left) {
  ChipsReport out{.model = model,
                  .words = words_of(model),
                  .ops = {},
                  .macs = 0,
                  .chips = {},
                  .may_divide = may_divide_by_cores(session)};
  const std::vector<uint64_t> macs = macs_of(graph);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    out.ops.push_back({compile::op_name(out.words, op),
                       op.outputs.empty() ? "" : graph.tensor(op.outputs[0]).shape.to_string(),
                       macs[i],
                       {}});
    out.macs += out.ops.back().macs;
  }
  add_edges(graph, out.ops);
  const npu::MadeFor made = npu::made_for(graph);
  if (!made.accelerator.empty() && made.chips.empty())
    log::message(log::Level::warning, "{}{}", model, npu::text_of(made));
  for (const npu::Chip& chip : made.chips.empty() ? proven_chips() : made.chips) {
    SK_TRY_ASSIGN(const npu::Driver* const driver, npu::driver_of(chip));
    runtime::SessionOptions own = session;
    if (own.tuning && own.tuning->chip != chip.name) own.tuning = nullptr;
    auto checked = left != nullptr ? check_delegate(*driver, chip, graph, out, own, *left)
                                   : check_chip(*driver, chip, graph, out, own);
    if (!checked.ok()) return std::move(checked).error().with_context(chip.name);
    out.chips.push_back(std::move(checked).value());
  }
  return out;
}

namespace {

// A row for each chip, with the numbers that most users need.
std::string print_verdicts(const ChipsReport& report) {
  const auto of_all = [](const compile::ModelUse& use) {
    return fmt::format("{} of {}{}{}", use.npu_ops, use.ops,
                       use.part_ops == 0 ? "" : fmt::format(", {} in part", use.part_ops),
                       use.folded_ops == 0 ? "" : fmt::format(", {} folded", use.folded_ops));
  };
  TextTable table({"chip", "on the NPU", "parts", "of MACs", "of CPU time", "whole network", "CPU alone"});
  std::vector<std::pair<std::string, sim::Clock>> clocks;
  for (const ChipCheck& chip : report.chips) {
    const bool is_timed = chip.wall_us >= 0 && chip.npu_parts != 0;  // else the time is that of the CPU alone
    table.add({chip.chip.name, of_all(chip.use), fmt::format("{}", chip.npu_parts), chip.share.print_macs(),
               chip.share.print_cpu_time(),
               is_timed ? fmt::format("{} +-{:.0f} %", print_ms(chip.wall_us / 1000), chip.time_error * 100) : "-",
               print_on_cpu_cores(chip.chip.name, chip.cpu_alone_us)});
    if (is_timed) clocks.emplace_back(chip.chip.name, chip.clock);
  }
  return table.print() + print_clocks(clocks);
}

std::string print_ops(const ChipsReport& report) {
  std::vector<std::string> header = {"op", "kind", "output", "MACs"};
  for (const ChipCheck& chip : report.chips) header.push_back(chip.chip.name);
  TextTable table(std::move(header));
  for (size_t i = 0; i < report.ops.size(); ++i) {
    const ModelOp& op = report.ops[i];
    std::vector<std::string> row = {fmt::format("{}", i), op.kind, op.output, op.macs ? print_count(op.macs) : "-"};
    for (const ChipCheck& chip : report.chips) row.push_back(chip.where[i]);
    table.add(std::move(row));
  }
  return table.print();
}

}  // namespace

std::string print_chips(const ChipsReport& report) {
  std::string out = fmt::format("{}\n\n{}", report.model, print_verdicts(report));
  const auto is_to_verify = [](const compile::OpRow& row) { return row.on_npu && !row.stands_on.empty(); };
  if (std::ranges::any_of(report.chips,
                          [&](const ChipCheck& chip) { return std::ranges::any_of(chip.rows, is_to_verify); }))
    out +=
        "\n"
        "includes operations on assumptions: each board compares them with the CPU first (docs/trust.md)\n";
  for (const ChipCheck& chip : report.chips) {
    const std::string faster = chip.npu_parts == 0 || chip.wall_us < 0
                                   ? ""
                                   : advise_cpu(chip.chip.name, chip.wall_us, chip.cpu_alone_us, report.may_divide);
    out += fmt::format("\n{}, {}{}\n", chip.chip.name, chip.chip.title, on_cores(chip.cores));
    if (!faster.empty()) out += wrapped(faster, 2) + "\n";
    out += print_advice(chip.rows, chip.use.ops, chip.advice, report.words);
  }
  return fmt::format("{}\n{}", out, print_ops(report));
}

std::string chips_json_text(const ChipsReport& report) {
  nlohmann::json ops = nlohmann::json::array(), chips = nlohmann::json::array();
  for (const ModelOp& op : report.ops) ops.push_back({{"kind", op.kind}, {"output", op.output}, {"macs", op.macs}});
  for (const ChipCheck& chip : report.chips) {
    nlohmann::json reasons = nlohmann::json::array();
    for (const compile::ReasonGroup& group : compile::group_reasons(chip.rows))
      reasons.push_back({{"reason", group.reason}, {"ops", group.ops}, {"remedy", group.remedy_text(report.words)}});
    chips.push_back({{"chip", chip.chip.name},
                     {"title", chip.chip.title},
                     {"where", chip.where},
                     {"why", chip.why},
                     {"npu_ops", chip.use.npu_ops},
                     {"part_ops", chip.use.part_ops},
                     {"folded_ops", chip.use.folded_ops},
                     {"npu_parts", chip.npu_parts},
                     {"npu_macs", chip.npu_macs},
                     {"percent_on_npu", chip.share.percent()},
                     {"percent_of_macs", percent_or_null(chip.share.macs)},
                     {"percent_of_cpu_time", percent_or_null(chip.share.cpu_time)},
                     {"reasons", reasons},
                     {"error", steps_json(chip)},
                     {"simulated_us", us_json(chip)},
                     {"wall_ms", ms_or_null(chip.wall_us)},
                     {"clock_mhz", mhz_or_null(chip.clock)},
                     {"cpu_alone_ms", ms_or_null(chip.cpu_alone_us)},
                     {"advice", chip.advice}});
    if (chip.cores != 0) chips.back()["cores"] = chip.cores;
  }
  return report_text({{"model", report.model}, {"macs", report.macs}, {"ops", ops}, {"chips", chips}});
}

}  // namespace skillet::tools
