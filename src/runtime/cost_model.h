// What compiled programs take on a chip, by the timing model of its jobs: nothing runs, and what a job means does not
// count. Called by tuned_driver.h and tools. Must not know: drivers, what a choice means.
#pragma once

#include <span>
#include <vector>

#include "compile/offload.h"
#include "npu/driver.h"
#include "sim/timing.h"

namespace skillet::runtime {

// Error unsupported, with the reason: the chip is not timed.
using Measured = std::span<const sim::ParameterValue>;  // in place of the chip's own rows
Result<compile::ProgramCosts> timing_costs(const npu::Chip& chip, Measured measured = {});
// The same with the CPU of such a board, of which so many large cores compute (0: all; never more than there are), and
// the way to it and back.
Result<compile::CostModel> timing_cost_model(const npu::Chip& chip, int host_threads = 0, Measured measured = {});
struct TimedTask {
  sim::Cost cost;
  size_t job = 0;        // of the program
  size_t operation = 0;  // of the program; their number where it says nothing of this task
  bool begins_job = false;
};
// The tasks of a program whose buffers have their contents, in order.
Result<std::vector<TimedTask>> time_tasks(const npu::Program& program, sim::Timer& timer);
// The way to an NPU's part and back, for each run.
double transfer_us(const sim::Timer& timer, const ir::Graph& part);
// Of all large cores.
compile::CpuSpeed cpu_speed(const sim::Timer& timer);

}  // namespace skillet::runtime
