#include "tools/program_timing.h"

#include "runtime/judge.h"
#include "runtime/record_program.h"
#include "tools/recorded_memory.h"
#include "tools/text_table.h"

namespace skillet::tools {
Result<ProgramTiming> time_capture(sim::Timer& timer, capture::Reader reader) {
  ProgramTiming out{.error = timer.error()};
  RecordedMemory memory;
  while (true) {
    SK_TRY_ASSIGN(const auto submission, reader.next());
    if (!submission) break;
    SK_TRY(memory.add(*submission));
    const size_t before = out.costs.size();
    for (const capture::Job& job : submission->jobs) {
      const std::vector<sim::Commands> commands = commands_of(job);
      SK_TRY_ASSIGN(auto costs, timer.time_job({.commands = commands}, memory.memory()));
      std::move(costs.begin(), costs.end(), std::back_inserter(out.costs));
    }
    out.submissions += out.costs.size() > before ? 1 : 0;  // others only set the chip up
  }
  const sim::Totals sum = sim::total(out.costs);
  out.tasks = out.costs.size();
  out.device_us = sum.us;
  out.wall_us = timer.wall_us(sum.us, out.tasks, out.submissions);
  out.read_bytes = sum.read_bytes;
  out.written_bytes = sum.written_bytes;
  return out;
}

Result<ProgramTiming> time_parts(std::string_view chip, const std::vector<compile::Part>& parts,
                                 std::span<const sim::ParameterValue> overrides) {
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip, sim::Jobs::open, overrides));
  std::vector<runtime::ProgramToRecord> programs;
  for (const compile::Part& part : parts) {
    if (part.program && !part.program->jobs.empty()) programs.push_back({*part.program, &part.partition.graph, {}});
  }
  if (programs.empty()) return ProgramTiming{.error = timer->error()};
  SK_TRY_ASSIGN(runtime::RecordedPrograms done, runtime::record_programs(std::string(chip), std::move(programs)));
  return time_capture(*timer, capture::Reader::of(std::move(done.capture)));
}

Result<std::optional<ProgramTiming>> time_if_known(std::string_view chip, const compile::Compiled& compiled) {
  if (std::ranges::count(sim::timed_chips(sim::Jobs::open), chip) == 0) return std::optional<ProgramTiming>();
  for (const compile::Part& part : compiled.parts)
    if (!part.bands.empty()) return std::optional<ProgramTiming>();
  SK_TRY_ASSIGN(ProgramTiming timing, time_parts(chip, compiled.parts));
  std::vector<compile::OpRow> rows = compile::rows(compiled);
  add_cpu_times(chip, compiled.graph, rows);
  for (const compile::OpRow& row : rows) timing.cpu_us += row.on_npu ? 0 : row.cpu_us;
  return std::optional(std::move(timing));
}

void add_cpu_times(std::string_view chip, const ir::Graph& graph, std::vector<compile::OpRow>& rows) {
  const auto timer = sim::create_timer(chip, sim::Jobs::open);
  if (!timer.ok()) return;
  for (compile::OpRow& row : rows) {
    if (!row.on_npu) row.cpu_us = runtime::cpu_speed(**timer).us(graph, row.op);
  }
}

std::string print_simulated(double us, double error) {
  return fmt::format("{} (simulated, +-{:.0f} %)", print_ms(us / 1000), error * 100);
}

}  // namespace skillet::tools
