// What compiled programs, or recorded submissions, take on a chip: they are loaded and sent to a device that computes
// nothing, and what it gets is timed. Called by `skillet plan`, `run` and `check`.
// Must not know: a vendor's anything; how a time is made.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "capture/reader.h"
#include "compile/compile.h"
#include "compile/report.h"
#include "runtime/session.h"
#include "sim/timing.h"

namespace skillet::tools {

struct ProgramTiming {
  std::vector<sim::Cost> costs;  // of all tasks
  double device_us = 0, wall_us = 0;
  // Of the whole network, by time_if_known() only: what is left to the CPU takes there, how many of these run nowhere,
  // for want of a kernel: then there is no time of the whole.
  double cpu_us = 0;
  size_t nowhere = 0;
  double whole_us() const { return wall_us + cpu_us; }
  double error = 0;  // share of each of them
  sim::Clock clock;
  double read_bytes = 0, written_bytes = 0;
  size_t tasks = 0, jobs = 0, submissions = 0;
  size_t cores = 0;  // of an NPU with several: at most so many work at the same time; 0: it has one
};

// The NPU's parts, and the way to and from them, where a board has what a row of the timing parameters says.
struct StateTime {
  std::string_view title;  // empty: there is only one
  sim::Clock clock;
  double wall_us = 0;
  double low_us = 0, high_us = 0;  // with the error of device times, and what published times leave open of the rest
};

Result<ProgramTiming> time_capture(sim::Timer& timer, capture::Reader reader);
// Of all NPU parts; the programs are copied, not taken.
Result<ProgramTiming> time_parts(std::string_view chip, const std::vector<compile::Part>& parts,
                                 std::span<const sim::ParameterValue> overrides = {});

// Of each state of a board that makes a difference; what is overridden is so in all that do not say otherwise, and
// comes first.
Result<std::vector<StateTime>> time_states(std::string_view chip, const std::vector<compile::Part>& parts,
                                           std::span<const sim::ParameterValue> overrides = {});

// The whole network, on a device of which that was measured: the same, and the operations that are left to the CPU. A
// part in bands takes the NPU as long as the slowest core with its share of the memory, and its wall time is until the
// host has put the output together. Nothing where the chip is not timed.
Result<std::optional<ProgramTiming>> time_if_known(std::string_view chip, const compile::Compiled& compiled,
                                                   std::span<const sim::ParameterValue> measured = {});

// What the CPU of such a board takes for the operations that are left to it; nothing where the chip is not timed.
void add_cpu_times(std::string_view chip, const ir::Graph& graph, std::vector<compile::OpRow>& rows);
// "3.4 ms (simulated, at 786 MHz, +-20 %)"
std::string print_simulated(double us, const ProgramTiming& timing);
// Of ProgramTiming::cores: "", ", on one core", ", on 3 cores"
std::string on_cores(size_t cores);
// ", at 786 MHz"; empty: it is not known.
std::string at_clock(const sim::Clock& clock);
// "\nNPU clocks: a311d at 800 MHz, rk3588 at 200 MHz\n", of chips and what their times are for; empty: none is known.
std::string print_clocks(std::span<const std::pair<std::string, sim::Clock>> clocks);
// What a chip's times are for.
sim::Clock clock_of(std::string_view chip, std::span<const sim::ParameterValue> overrides = {});
// "; the whole network, with the mainline kernel and 0.10 ms on the CPU: 5.2 ms"
std::string print_whole(const ProgramTiming& timing);

// The same model without an NPU: what the CPU of the chip's board takes for all of it; below 0: not known, or there is
// an operation without a kernel.
double cpu_alone_us(const sim::Timer& timer, const ir::Graph& model);
double cpu_alone_us(std::string_view chip, const ir::Graph& model);
// "CPU alone, 4 cores: 0.13 ms", "CPU alone: not known" below 0; the time for JSON.
std::string print_cpu_alone(std::string_view chip, double us);
// "0.13 ms (4 cores)", "not known".
std::string print_on_cpu_cores(std::string_view chip, double us);
// That times of the CPU are of: all large ones of such a board.
int cpu_cores_of(std::string_view chip);
nlohmann::json ms_or_null(double us);
nlohmann::json mhz_or_null(const sim::Clock& clock);
// Whether --host-threads auto would divide in another way.
bool may_divide_by_cores(const runtime::SessionOptions& session);
// A line that says so, with what to do, where that is less than `whole_us`; else empty.
std::string advise_cpu(std::string_view chip, double whole_us, double cpu_alone_us, bool may_divide);
// Operations that stay on the CPU, but have no kernel there.
size_t ops_nowhere(const compile::Compiled& compiled);
// The same, marked in `rows` with the reason.
void mark_nowhere(const ir::Graph& graph, std::vector<compile::OpRow>& rows);
// With what was measured of the device, where that counts.
nlohmann::json json_of(const ProgramTiming& timing, std::span<const sim::ParameterValue> measured = {});
nlohmann::json json_of(std::span<const sim::ParameterValue> measured);
// "with what was measured on npu: submit_us = 40": a line.
std::string print_measured(const std::string& device, std::span<const sim::ParameterValue> values);

}  // namespace skillet::tools
