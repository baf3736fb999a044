// The choices of `tuned` for each operation of a part, their predicted savings, and their evidence.
// Called by `skillet compile --explain`.
// Must not know: the meaning of a choice.
#pragma once

#include <string>

#include "base/result.h"
#include "compile/compile.h"
#include "compile/tune.h"
#include "npu/driver.h"
#include "sim/timing.h"

namespace skillet::tools {

struct Explanation {
  compile::Tuned tuned;
  std::vector<compile::OperationCost> proven;  // by op of the part, like OperationCosts of `tuned`
};
Result<Explanation> explain_tuning(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& part,
                                   const npu::CompileOptions& options, const compile::ProgramCosts& program_costs);

// `op_map`: maps ops of the part to those of the model.
std::string print_explanation(const Explanation& explanation, const ir::Graph& part,
                              const std::vector<ir::OpId>& op_map, const npu::Driver& driver, const sim::Clock& clock);

}  // namespace skillet::tools
