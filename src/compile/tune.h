// tune(): the choices that a driver leaves open, each operation's by the costs of the programs that they make.
// A function of its arguments alone: the same costs, the same program.
// Called by runtime/tuned_driver.h and `skillet tune`; runtime/cost_model.h makes ProgramCosts.
// Must not know: how a time is found, a vendor's anything.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::compile {

// What operations take, predicted or measured.
struct OperationCost {
  double device_us = 0;
  double start_us = 0;  // of the kernel, for starting its tasks
  double dram_bytes = 0;
  size_t tasks = 0;

  double wall_us() const { return device_us + start_us; }
  OperationCost& operator+=(const OperationCost& other);
};
OperationCost sum_of(const std::vector<OperationCost>& costs);

// By Program::operations.
using ProgramCosts = std::function<Result<std::vector<OperationCost>>(const npu::Program&)>;

struct Tuned {
  std::vector<npu::Choice> choices;          // by op, then by name in the driver's order; none: nothing is better
  std::vector<OperationCost> before, after;  // by op of the graph; what a driver inserts counts to the op behind it
  size_t tried = 0;                          // programs
};
// Names one after the other; of each, every op takes the value of least wall time. What is gained must be more than
// what is not known of a task (see kTaskMarginUs). Error: the graph does not compile, or its costs are not known.
Result<Tuned> tune(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph,
                   const npu::CompileOptions& options, const ProgramCosts& program_costs);

// What `program_costs` gives, by op of the graph.
Result<std::vector<OperationCost>> operation_costs(const npu::Program& program, const ir::Graph& graph,
                                                   const ProgramCosts& program_costs);

}  // namespace skillet::compile
