// tune(): makes the choices that a driver leaves open for each operation, by the costs of the resulting programs. A
// pure function of its arguments: the same costs give the same program.
// Called by runtime/tuned_driver.h and `skillet tune`; runtime/cost_model.h makes ProgramCosts.
// Must not know: how a time is found, anything of one vendor.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::compile {

// Costs of operations, predicted or measured.
struct OperationCost {
  double device_us = 0;
  double start_us = 0;  // of the kernel driver, for starting its tasks
  double dram_bytes = 0;
  size_t tasks = 0;

  double wall_us() const { return device_us + start_us; }
  OperationCost& operator+=(const OperationCost& other);
};
OperationCost sum_of(const std::vector<OperationCost>& costs);

// Costs by Program::operations.
using ProgramCosts = std::function<Result<std::vector<OperationCost>>(const npu::Program&)>;

struct Tuned {
  std::vector<npu::Choice> choices;          // by op, then by name in the driver's order; none: the defaults are best
  std::vector<OperationCost> before, after;  // by op of the graph; inserted operations count for the op after them
  size_t tried = 0;                          // number of programs compiled
};
// Tries one name after the other; every op takes the value with the least wall time. The gain must exceed the
// uncertainty about tasks (see kTaskMarginUs). Error: the graph does not compile, or its costs are not known.
Result<Tuned> tune(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph,
                   const npu::CompileOptions& options, const ProgramCosts& program_costs);

// The result of `program_costs`, by op of the graph.
Result<std::vector<OperationCost>> operation_costs(const npu::Program& program, const ir::Graph& graph,
                                                   const ProgramCosts& program_costs);

}  // namespace skillet::compile
