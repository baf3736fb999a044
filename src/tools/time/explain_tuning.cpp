#include "tools/time/explain_tuning.h"

#include <fmt/ranges.h>

#include <set>

#include "tools/show/text_table.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

using compile::OperationCost;

std::string choices_text(const std::vector<npu::Choice>& choices, ir::OpId op) {
  std::vector<std::string> out;
  for (const npu::Choice& one : choices)
    if (one.op == op) out.push_back(fmt::format("{} {}", one.name, one.value));
  return out.empty() ? "-" : fmt::format("{}", fmt::join(out, ", "));
}

std::vector<std::string> row_of(std::string op, std::string choices, const OperationCost& before,
                                const OperationCost& after) {
  const auto pair = [](const std::string& a, const std::string& b) { return a == b ? a : a + " -> " + b; };
  const auto ms = [](double us) { return fmt::format("{:.3f}", us / 1000); };
  const auto bytes = [](double n) { return fmt::format("{:.0f}", n / 1000); };
  return {std::move(op),
          std::move(choices),
          pair(ms(before.device_us), ms(after.device_us)),
          pair(ms(before.wall_us()), ms(after.wall_us())),
          pair(bytes(before.dram_bytes), bytes(after.dram_bytes)),
          pair(fmt::format("{}", before.tasks), fmt::format("{}", after.tasks))};
}

}  // namespace

Result<Explanation> explain_tuning(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& part,
                                   const npu::CompileOptions& options, const compile::ProgramCosts& program_costs) {
  npu::CompileOptions proven = options;
  proven.tuning = npu::Tuning::proven;
  proven.switches.clear();
  proven.choices.clear();
  Explanation out;
  SK_TRY_ASSIGN(const npu::Program program, driver.compile(chip, part, proven));
  SK_TRY_ASSIGN(out.proven, compile::operation_costs(program, part, program_costs));
  SK_TRY_ASSIGN(out.tuned, compile::tune(driver, chip, part, options, program_costs));
  return out;
}

std::string print_explanation(const Explanation& explanation, const ir::Graph& part,
                              const std::vector<ir::OpId>& op_map, const npu::Driver& driver, const sim::Clock& clock) {
  const compile::Tuned& tuned = explanation.tuned;
  TextTable table({"model op", "chosen", "device ms", "wall ms", "DRAM kB", "tasks"});
  for (size_t i = 0; i < part.ops.size(); ++i)
    table.add(row_of(fmt::format("{} {}", op_map.at(i), ir::op_kind_name(part.ops[i].kind)),
                     choices_text(tuned.choices, static_cast<ir::OpId>(i)), explanation.proven[i], tuned.after[i]));
  table.add(row_of("all", fmt::format("of {} programs", tuned.tried), compile::sum_of(explanation.proven),
                   compile::sum_of(tuned.after)));
  std::string text = table.print_wrapped();
  std::set<std::string> names;
  for (const npu::Choice& one : tuned.choices) names.insert(one.name);
  for (const npu::TuningSwitch& row : driver.switches()) {
    const bool on = row.since == npu::Tuning::tuned;
    if (on || names.contains(std::string(row.name)))
      text += wrapped(fmt::format("  {}: {}", row.name, row.reason), 4) + "\n";
  }
  return text + fmt::format("  proven -> tuned, simulated{}: nothing was measured (docs/timing.md)\n", at_clock(clock));
}

}  // namespace skillet::tools
