#include "tools/time/chip_plan.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/cli/verbs.h"
#include "tools/show/text_table.h"
#include "tools/time/npu_use.h"

namespace skillet::tools {
namespace {

// "9.0 to 13.3 ms": range that published times leave, and the error of device times.
std::string range(const ChipPlan& plan, const StateTime& state) {
  if (plan.nowhere != 0) return "-";
  return fmt::format("{:.2f} to {:.2f} ms", (state.low_us + plan.cpu_us) / 1000, (state.high_us + plan.cpu_us) / 1000);
}

// Times of the network for each state of the board, one column each.
std::string print_states(const std::vector<ChipPlan>& plans) {
  std::string text;
  for (const ChipPlan& plan : plans) {
    if (!plan.has_states() || plan.npu_ops == 0) continue;
    std::vector<std::string> head = {"network on"}, ranges = {plan.chip}, middles = {"  most likely"}, estimates;
    for (const StateTime& state : plan.states) {
      head.emplace_back(state.title.empty() ? "as --set" : state.title);
      if (state.clock.is_estimate()) estimates.push_back(head.back());
      ranges.push_back(range(plan, state));
      middles.push_back(fmt::format("{:.2f} ms", (state.wall_us + plan.cpu_us) / 1000));
    }
    TextTable table(head);
    table.add(ranges);
    table.add(middles);
    text += "\n" + table.print();
    if (!estimates.empty()) text += wrapped(fmt::format("  estimates: {}", fmt::join(estimates, "; ")), 2) + "\n";
  }
  return text;
}

}  // namespace

nlohmann::json json_of(const ChipPlan& plan) {
  if (!plan.refusal.empty()) return {{"chip", plan.chip}, {"refusal", plan.refusal}};
  const ProgramTiming& t = plan.timing;
  nlohmann::json out = {{"chip", plan.chip},
                        {"simulated", true},
                        {"device_ms", t.device_us / 1000},
                        {"wall_ms", ms_or_null(plan.whole_us())},
                        {"clock_mhz", mhz_or_null(t.clock)},
                        {"error", t.error},
                        {"low_ms", t.device_us / 1000 * (1 - t.error)},
                        {"high_ms", t.device_us / 1000 * (1 + t.error)},
                        {"dram_read_bytes", t.read_bytes},
                        {"dram_written_bytes", t.written_bytes},
                        {"device_memory_bytes", plan.memory_bytes},
                        {"tasks", t.tasks},
                        {"submissions", t.submissions},
                        {"npu_ops", plan.npu_ops},
                        {"cpu_ops", plan.cpu_ops},
                        {"cpu_ms", plan.cpu_us / 1000},
                        {"cpu_alone_ms", ms_or_null(plan.cpu_alone_us)},
                        {"nowhere_ops", plan.nowhere}};
  if (t.cores != 0) out["cores"] = t.cores;
  add_json(out, plan.use);
  for (const StateTime& state : plan.states) {
    if (!plan.has_states()) break;
    out["states"].push_back({{"name", state.title},
                             {"clock_mhz", mhz_or_null(state.clock)},
                             {"estimate", state.clock.is_estimate()},
                             {"wall_ms", (state.wall_us + plan.cpu_us) / 1000},
                             {"low_ms", (state.low_us + plan.cpu_us) / 1000},
                             {"high_ms", (state.high_us + plan.cpu_us) / 1000}});
  }
  return out;
}

void print(const std::string& model, const std::vector<ChipPlan>& plans) {
  const int cores_shown = plans.empty() ? 0 : cpu_cores_of(plans[0].chip);  // chips with another number show it
  TextTable table({"chip", "on the NPU", "device", "network", "DRAM", "memory", "tasks", "CPU part",
                   fmt::format("CPU, {} cores", cores_shown)});
  std::string refusals, cores, notes;
  std::vector<std::pair<std::string, sim::Clock>> clocks;
  const auto ms = [](double us) { return us < 0 ? std::string("-") : fmt::format("{:.2f} ms", us / 1000); };
  for (const ChipPlan& plan : plans) {
    if (!plan.refusal.empty()) {
      refusals += fmt::format("{}: {}\n", plan.chip, plan.refusal);
      continue;
    }
    const ProgramTiming& t = plan.timing;
    // If the NPU takes nothing, the CPU's time is the network's.
    table.add({plan.chip, fmt::format("{} of {}", plan.use.npu_ops, plan.use.ops),
               fmt::format("{:.2f} ms +-{:.0f} %", t.device_us / 1000, t.error * 100),
               ms(plan.npu_ops == 0 ? -1 : plan.whole_us()),
               print_bytes(static_cast<uint64_t>(t.read_bytes + t.written_bytes)), print_bytes(plan.memory_bytes),
               fmt::format("{}", t.tasks), ms(plan.npu_ops == 0 ? -1 : plan.cpu_us),
               cpu_cores_of(plan.chip) == cores_shown ? ms(plan.cpu_alone_us)
                                                      : print_on_cpu_cores(plan.chip, plan.cpu_alone_us)});
    clocks.emplace_back(plan.chip, t.clock);
    const std::string faster =
        plan.npu_ops == 0 ? "" : advise_cpu(plan.chip, plan.whole_us(), plan.cpu_alone_us, plan.may_divide);
    if (plan.nowhere != 0)
      notes += fmt::format(
          "{}: the network cannot run: {} operation(s) have no kernel on the CPU (skillet check says which)\n",
          plan.chip, plan.nowhere);
    else if (!faster.empty())
      notes += wrapped(fmt::format("{}: {}", plan.chip, faster), 2) + "\n";
    if (t.cores != 0)
      cores += fmt::format("{}{}; `skillet run` uses several cores if predicted to be faster (--cores)\n", plan.chip,
                           on_cores(t.cores));
  }
  out("{}: simulated times, nothing was measured (docs/timing.md)\n\n{}", printable(model), table.print());
  out("{}", print_clocks(clocks));
  if (const std::string states = print_states(plans); !states.empty()) out("{}", states);
  if (!notes.empty()) out("\n{}", notes);
  if (!cores.empty()) out("\n{}", cores);
  if (!refusals.empty()) out("\n{}", refusals);
}

}  // namespace skillet::tools
