// Predicts times of compiled programs or recorded submissions on a chip: sends them to a device that computes nothing,
// and times what it receives. Called by `skillet plan`, `run` and `check`.
// Must not know: anything of a vendor; how a time is computed.
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
  // For the whole network, set by time_if_known() only: time of the operations left to the CPU, and how many of them
  // have no kernel and cannot run. If there are such operations, the whole has no time.
  double cpu_us = 0;
  size_t nowhere = 0;
  double whole_us() const { return wall_us + cpu_us; }
  double error = 0;  // relative error of each of the times
  sim::Clock clock;
  double read_bytes = 0, written_bytes = 0;
  size_t tasks = 0, jobs = 0, submissions = 0;
  size_t cores = 0;  // for an NPU with several cores: maximum number that work at the same time; 0: one core
};

// Time of the NPU parts with transfers, on a board in one state of the timing parameters.
struct StateTime {
  std::string_view title;  // empty: there is only one state
  sim::Clock clock;
  double wall_us = 0;
  double low_us = 0, high_us = 0;  // with the error of device times, and the range that published times leave
};

Result<ProgramTiming> time_capture(sim::Timer& timer, capture::Reader reader);
// Times all NPU parts; the programs are copied.
Result<ProgramTiming> time_parts(std::string_view chip, const std::vector<compile::Part>& parts,
                                 std::span<const sim::ParameterValue> overrides = {});

// Times for each state of a board that affects them. With overrides there is only one state, without a title.
Result<std::vector<StateTime>> time_states(std::string_view chip, const std::vector<compile::Part>& parts,
                                           std::span<const sim::ParameterValue> overrides = {});

// Times the whole network with parameters measured on a device: its NPU parts and the operations left to the CPU. A
// part in bands takes as long as the slowest core with its share of the memory bandwidth; its wall time ends when the
// host has joined the output. None if the chip has no timing model.
Result<std::optional<ProgramTiming>> time_if_known(std::string_view chip, const compile::Compiled& compiled,
                                                   std::span<const sim::ParameterValue> measured = {});

// Adds predicted CPU times for the operations that are left to the CPU; none if the chip has no timing model.
void add_cpu_times(std::string_view chip, const ir::Graph& graph, std::vector<compile::OpRow>& rows);
// "3.4 ms (simulated, at 786 MHz, +-20 %)"
std::string print_simulated(double us, const ProgramTiming& timing);
// Text for ProgramTiming::cores: "", ", on one core", ", on 3 cores"
std::string on_cores(size_t cores);
// ", at 786 MHz"; empty: not known.
std::string at_clock(const sim::Clock& clock);
// An empty line, then "NPU clocks: a311d at 800 MHz, rk3588 at 200 MHz", for the clocks of several chips' times; empty:
// none is known.
std::string print_clocks(std::span<const std::pair<std::string, sim::Clock>> clocks);
// The clock that a chip's times are for.
sim::Clock clock_of(std::string_view chip, std::span<const sim::ParameterValue> overrides = {});
// "; the whole network, with the mainline kernel and 0.10 ms on the CPU: 5.2 ms"
std::string print_whole(const ProgramTiming& timing);

// Predicted time of the whole model on the CPU of the chip's board; below 0: not known, or an operation has no kernel.
double cpu_alone_us(const sim::Timer& timer, const ir::Graph& model);
double cpu_alone_us(std::string_view chip, const ir::Graph& model);
// "CPU alone, 4 cores: 0.13 ms", "CPU alone: not known" below 0; the time for JSON.
std::string print_cpu_alone(std::string_view chip, double us);
// "0.13 ms (4 cores)", "not known".
std::string print_on_cpu_cores(std::string_view chip, double us);
// Number of cores for CPU times: all large cores of such a board.
int cpu_cores_of(std::string_view chip);
nlohmann::json ms_or_null(double us);
nlohmann::json mhz_or_null(const sim::Clock& clock);
// True if --host-threads auto may give another partition.
bool may_divide_by_cores(const runtime::SessionOptions& session);
// A line of advice if the CPU alone takes less than `whole_us`; else empty.
std::string advise_cpu(std::string_view chip, double whole_us, double cpu_alone_us, bool may_divide);
// Number of operations that stay on the CPU but have no kernel there.
size_t ops_nowhere(const compile::Compiled& compiled);
// Marks these operations in `rows`, with the reason.
void mark_nowhere(const ir::Graph& graph, std::vector<compile::OpRow>& rows);
// With parameters measured on the device, if there are any.
nlohmann::json json_of(const ProgramTiming& timing, std::span<const sim::ParameterValue> measured = {});
nlohmann::json json_of(std::span<const sim::ParameterValue> measured);
// "with values measured on npu: submit_us = 40": one line.
std::string print_measured(const std::string& device, std::span<const sim::ParameterValue> values);

}  // namespace skillet::tools
