#include "tools/time/program_timing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compile/bands.h"
#include "graph/ref/ref.h"
#include "runtime/cost_model.h"
#include "runtime/costs.h"
#include "runtime/record_program.h"
#include "tools/jobs/recorded_memory.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

using Overrides = std::vector<sim::ParameterValue>;

// None: the chip's layers are not divided into bands.
std::optional<npu::CostModel> costs_of(std::string_view name, const Overrides& measured) {
  const auto chip = npu::find_chip(name);
  if (!chip.ok()) return std::nullopt;
  const auto driver = npu::driver_of(*chip);
  return driver.ok() ? (*driver)->costs(*chip, runtime::by_name(measured)) : std::nullopt;
}

std::vector<runtime::ProgramToRecord> programs_of(const std::vector<compile::Part>& parts) {
  std::vector<runtime::ProgramToRecord> programs;
  for (const compile::Part& part : parts) {
    if (part.program && !part.program->jobs.empty()) programs.push_back({*part.program, &part.partition.graph, {}});
  }
  return programs;
}

ProgramTiming timing_by(const sim::Timer& timer) { return {.error = timer.error(), .clock = timer.clock()}; }

// Times the same programs with each set of parameters.
Result<std::vector<ProgramTiming>> time_programs(std::string_view chip, std::vector<runtime::ProgramToRecord> programs,
                                                 std::span<const Overrides> each) {
  std::vector<const ir::Graph*> graphs;
  for (const runtime::ProgramToRecord& one : programs) graphs.push_back(one.graph);
  capture::Capture recorded;
  if (!programs.empty()) {
    SK_TRY_ASSIGN(runtime::RecordedPrograms done, runtime::record_programs(std::string(chip), std::move(programs)));
    recorded = std::move(done.capture);
  }
  std::vector<ProgramTiming> out;
  for (const Overrides& overrides : each) {
    SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip, sim::Jobs::open, overrides));
    ProgramTiming& one = out.emplace_back(timing_by(*timer));
    if (!graphs.empty()) SK_TRY_INTO(one, time_capture(*timer, capture::Reader::of(recorded)));
    for (const ir::Graph* graph : graphs) one.wall_us += runtime::transfer_us(*timer, *graph);
    one.cores = costs_of(chip, overrides) ? 1 : 0;
  }
  return out;
}

// Gives each core its share of the common memory bandwidth, at most the bandwidth of one core alone.
Result<Overrides> shared_memory(std::string_view chip, const npu::CostModel& costs, size_t cores,
                                const Overrides& measured) {
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip, sim::Jobs::open, measured));
  const double alone = timer->parameter("dram_gbps"),
               share = costs.memory_bytes_per_us / 1e3 / static_cast<double>(cores);
  if (alone <= share) return measured;
  Overrides out = measured;
  std::erase_if(out, [](const sim::ParameterValue& one) { return one.name == "dram_gbps"; });
  out.push_back({"dram_gbps", share});
  return out;
}

void add_traffic(ProgramTiming& sum, ProgramTiming one) {
  std::move(one.costs.begin(), one.costs.end(), std::back_inserter(sum.costs));
  sum.read_bytes += one.read_bytes;
  sum.written_bytes += one.written_bytes;
  sum.tasks += one.tasks;
  sum.jobs += one.jobs;
  sum.submissions += one.submissions;
  sum.cores = std::max(sum.cores, one.cores);
}

Result<ProgramTiming> time_bands(std::string_view chip, const npu::CostModel& costs,
                                 const std::vector<compile::Band>& bands, const Overrides& measured) {
  SK_TRY_ASSIGN(const Overrides shared, shared_memory(chip, costs, bands.size(), measured));
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip, sim::Jobs::open, measured));
  ProgramTiming out{.cores = bands.size()};
  std::vector<const ir::Graph*> graphs;
  std::vector<double> core_us;
  for (const compile::Band& band : bands) {
    SK_TRY_ASSIGN(auto timed, time_programs(chip, {{band.program, &band.rows.graph, {}}}, {&shared, 1}));
    ProgramTiming& one = timed[0];
    graphs.push_back(&band.rows.graph);
    core_us.push_back(timer->wall_us(one.device_us, one.tasks, 0, 0));  // the host's share is added below
    out.device_us = std::max(out.device_us, one.device_us);
    add_traffic(out, std::move(one));
  }
  out.wall_us = compile::time_of_bands(costs, graphs, core_us);
  return out;
}

}  // namespace

Result<ProgramTiming> time_capture(sim::Timer& timer, capture::Reader reader) {
  ProgramTiming out = timing_by(timer);
  RecordedMemory memory;
  while (true) {
    SK_TRY_ASSIGN(const auto submission, reader.next());
    if (!submission) break;
    SK_TRY(memory.add(*submission));
    const size_t before = out.costs.size();
    size_t jobs = 0;
    for (const capture::Job& job : submission->jobs) {
      const std::vector<sim::Commands> commands = commands_of(job);
      SK_TRY_ASSIGN(auto costs, timer.time_job({.commands = commands}, memory.memory()));
      jobs += costs.empty() ? 0 : 1;
      std::move(costs.begin(), costs.end(), std::back_inserter(out.costs));
    }
    out.jobs += jobs;
    out.submissions += out.costs.size() > before ? 1 : 0;  // submissions without costs only set the chip up
  }
  const sim::Totals sum = sim::total(out.costs);
  out.tasks = out.costs.size();
  out.device_us = sum.us;
  out.wall_us = timer.wall_us(sum.us, out.tasks, out.jobs, out.submissions);
  out.read_bytes = sum.read_bytes;
  out.written_bytes = sum.written_bytes;
  return out;
}

Result<ProgramTiming> time_parts(std::string_view chip, const std::vector<compile::Part>& parts,
                                 std::span<const sim::ParameterValue> overrides) {
  const Overrides values(overrides.begin(), overrides.end());
  SK_TRY_ASSIGN(auto timed, time_programs(chip, programs_of(parts), {&values, 1}));
  return std::move(timed[0]);
}

Result<std::vector<StateTime>> time_states(std::string_view chip, const std::vector<compile::Part>& parts,
                                           std::span<const sim::ParameterValue> overrides) {
  std::vector<sim::TimingState> states = sim::timing_states(chip);
  // The named states are for unchanged parameters.
  if (states.empty() || !overrides.empty()) states = {{.title = "", .values = {overrides.begin(), overrides.end()}}};
  std::vector<Overrides> each;
  for (const sim::TimingState& state : states) {
    each.push_back(state.values);
    each.push_back(sim::ends_of_ranges(chip, true, state.values));
    each.push_back(sim::ends_of_ranges(chip, false, state.values));
  }
  SK_TRY_ASSIGN(const std::vector<ProgramTiming> timed, time_programs(chip, programs_of(parts), each));
  std::vector<StateTime> out;
  for (size_t i = 0; i < states.size(); ++i) {
    const ProgramTiming &usual = timed[3 * i], &fast = timed[3 * i + 1], &slow = timed[3 * i + 2];
    out.push_back({.title = states[i].title,
                   .clock = usual.clock,
                   .wall_us = usual.wall_us,
                   .low_us = fast.wall_us - fast.error * fast.device_us,
                   .high_us = slow.wall_us + slow.error * slow.device_us});
  }
  return out;
}

Result<std::optional<ProgramTiming>> time_if_known(std::string_view chip, const compile::Compiled& compiled,
                                                   std::span<const sim::ParameterValue> measured) {
  if (std::ranges::count(sim::timed_chips(sim::Jobs::open), chip) == 0) return std::optional<ProgramTiming>();
  SK_TRY_ASSIGN(ProgramTiming timing, time_parts(chip, compiled.parts, measured));
  const Overrides values(measured.begin(), measured.end());
  const auto costs = costs_of(chip, values);
  for (const compile::Part& part : compiled.parts) {
    if (part.bands.empty() || !costs) continue;
    SK_TRY_ASSIGN(ProgramTiming one, time_bands(chip, *costs, part.bands, values));
    timing.device_us += one.device_us;
    timing.wall_us += one.wall_us;
    add_traffic(timing, std::move(one));
  }
  std::vector<compile::OpRow> rows = compile::rows(compiled);
  add_cpu_times(chip, compiled.graph, rows);
  for (const compile::OpRow& row : rows) timing.cpu_us += row.on_npu ? 0 : row.cpu_us;
  timing.nowhere = ops_nowhere(compiled);
  return std::optional(std::move(timing));
}

void add_cpu_times(std::string_view chip, const ir::Graph& graph, std::vector<compile::OpRow>& rows) {
  const auto timer = sim::create_timer(chip, sim::Jobs::open);
  if (!timer.ok()) return;
  for (compile::OpRow& row : rows) {
    if (!row.on_npu) row.cpu_us = runtime::cpu_speed(**timer).us(graph, row.op);
  }
}

std::string print_simulated(double us, const ProgramTiming& timing) {
  return fmt::format("{} (simulated{}, +-{:.0f} %)", print_ms(us / 1000), at_clock(timing.clock), timing.error * 100);
}

size_t ops_nowhere(const compile::Compiled& compiled) {
  size_t out = 0;
  for (size_t i = 0; i < compiled.ops.size(); ++i)
    out += !compiled.ops[i].on_npu && !ref::prepare(compiled.graph, static_cast<ir::OpId>(i)).ok() ? 1 : 0;
  return out;
}

void mark_nowhere(const ir::Graph& graph, std::vector<compile::OpRow>& rows) {
  for (compile::OpRow& row : rows) {
    if (row.on_npu) continue;
    const auto kernel = ref::prepare(graph, row.op);
    if (kernel.ok()) continue;
    row.nowhere = true;
    row.cpu_us = -1;
    const std::string& reason = kernel.error().message;
    if (row.plain != compile::without_names(reason, graph, row.op)) row.why += (row.why.empty() ? "" : "; ") + reason;
    row.plain = compile::without_names(row.why, graph, row.op);
  }
}

double cpu_alone_us(std::string_view chip, const ir::Graph& model) {
  const auto timer = sim::create_timer(chip, sim::Jobs::open);
  return timer.ok() ? cpu_alone_us(**timer, model) : -1;
}

double cpu_alone_us(const sim::Timer& timer, const ir::Graph& model) {
  double out = 0;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const auto op = static_cast<ir::OpId>(i);
    if (!ref::prepare(model, op).ok()) return -1;
    out += runtime::cpu_speed(timer).us(model, op);
  }
  return out;
}

int cpu_cores_of(std::string_view chip) {
  const auto timer = sim::create_timer(chip, sim::Jobs::open);
  return timer.ok() ? static_cast<int>((*timer)->parameter("cpu_cores")) : 1;
}

std::string print_cpu_alone(std::string_view chip, double us) {
  return us < 0 ? "CPU alone: not known"
                : fmt::format("CPU alone, {} cores: {}", cpu_cores_of(chip), print_ms(us / 1000));
}

std::string print_on_cpu_cores(std::string_view chip, double us) {
  return us < 0 ? "not known" : fmt::format("{} ({} cores)", print_ms(us / 1000), cpu_cores_of(chip));
}

nlohmann::json mhz_or_null(const sim::Clock& clock) {
  return clock.ghz == 0 ? nlohmann::json() : nlohmann::json(clock.ghz * 1000);
}

nlohmann::json ms_or_null(double us) { return us < 0 ? nlohmann::json() : nlohmann::json(us / 1000); }

bool may_divide_by_cores(const runtime::SessionOptions& session) {
  return runtime::partition_of(session) == compile::PartitionBy::predicted && session.host_threads == 1;
}

std::string advise_cpu(std::string_view chip, double whole_us, double cpu_alone_us, bool may_divide) {
  if (cpu_alone_us < 0 || cpu_alone_us >= whole_us) return "";
  return fmt::format("the CPU alone, on all {} cores, is predicted to be faster: {} (--device cpu{})",
                     cpu_cores_of(chip), print_ms(cpu_alone_us / 1000),
                     may_divide ? "; --host-threads auto divides by all cores, the default by one" : "");
}

std::string print_whole(const ProgramTiming& timing) {
  if (timing.nowhere != 0)
    return fmt::format("; the whole network cannot run: {} operation(s) have no kernel on the CPU", timing.nowhere);
  return fmt::format("; the whole network, with the mainline kernel{} and {:.2f} ms on the CPU: {}",
                     timing.cores > 1 ? ", the host's copies to and from the cores" : "", timing.cpu_us / 1000,
                     print_ms(timing.whole_us() / 1000));
}

std::string at_clock(const sim::Clock& clock) {
  const std::string text = sim::print(clock);
  return text.empty() ? text : ", " + text;
}

std::string print_clocks(std::span<const std::pair<std::string, sim::Clock>> clocks) {
  std::string text;
  for (const auto& [chip, clock] : clocks)
    if (clock.ghz != 0) text += fmt::format("{}{} {}", text.empty() ? "NPU clocks: " : ", ", chip, sim::print(clock));
  return text.empty() ? text : "\n" + wrapped(text, 2) + "\n";
}

sim::Clock clock_of(std::string_view chip, std::span<const sim::ParameterValue> overrides) {
  const auto timer = sim::create_timer(chip, sim::Jobs::open, overrides);
  return timer.ok() ? (*timer)->clock() : sim::Clock();
}

std::string on_cores(size_t cores) {
  if (cores == 0) return "";
  return cores == 1 ? ", on one core" : fmt::format(", on {} cores", cores);
}

nlohmann::json json_of(std::span<const sim::ParameterValue> measured) {
  nlohmann::json out = nlohmann::json::array();
  for (const sim::ParameterValue& one : measured) out.push_back({{"name", one.name}, {"value", one.value}});
  return out;
}

nlohmann::json json_of(const ProgramTiming& timing, std::span<const sim::ParameterValue> measured) {
  nlohmann::json out = {{"device_ms", timing.device_us / 1000},
                        {"wall_ms", timing.nowhere != 0 ? nlohmann::json() : nlohmann::json(timing.whole_us() / 1000)},
                        {"cpu_ms", timing.cpu_us / 1000},
                        {"clock_mhz", mhz_or_null(timing.clock)},
                        {"error", timing.error}};
  if (timing.cores != 0) out["cores"] = timing.cores;
  if (!measured.empty()) out["measured"] = json_of(measured);
  return out;
}

std::string print_measured(const std::string& device, std::span<const sim::ParameterValue> values) {
  std::string text;
  for (const sim::ParameterValue& one : values)
    text += fmt::format("{}{} = {:.4g}", text.empty() ? "" : ", ", one.name, one.value);
  return wrapped(fmt::format("with values measured on {}: {}", device, text), 2) + "\n";
}

}  // namespace skillet::tools
