// Predicted times of compiled programs on a chip, by the timing model of its jobs. Nothing runs, and results are not
// computed. Called by tuned_driver.h and tools. Must not know: drivers, what a choice means.
#pragma once

#include <span>
#include <vector>

#include "compile/offload.h"
#include "npu/driver.h"
#include "sim/timing.h"

namespace skillet::runtime {

// Error unsupported, with the reason: the chip is not timed.
using Measured = std::span<const sim::ParameterValue>;  // replace the chip's own rows
Result<compile::ProgramCosts> timing_costs(const npu::Chip& chip, Measured measured = {});
// The same with the board's CPU, of which `host_threads` large cores compute (0: all; at most as many as there are),
// and the cost of copies to and from the NPU.
Result<compile::CostModel> timing_cost_model(const npu::Chip& chip, int host_threads = 0, Measured measured = {});
struct TimedTask {
  sim::Cost cost;
  size_t job = 0;        // of the program
  size_t operation = 0;  // index in the program; their count if the program does not name this task's operation
  bool begins_job = false;
};
// The tasks of a program whose buffers have their contents, in order.
Result<std::vector<TimedTask>> time_tasks(const npu::Program& program, sim::Timer& timer);
// Time of the copies to and from an NPU part, for each run.
double transfer_us(const sim::Timer& timer, const ir::Graph& part);
// With all large cores.
compile::CpuSpeed cpu_speed(const sim::Timer& timer);

}  // namespace skillet::runtime
