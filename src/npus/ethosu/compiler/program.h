// make_program(): a Program of one operation from Vela, or of Skillet's own (own_program.cpp): a job, in an arena.
// Called by the driver.
// Must not know: devices.
#pragma once

#include "npu/driver.h"
#include "npus/ethosu/compiler/support.h"

namespace skillet::npus::ethosu {

Result<npu::Program> make_program(const hw::ChipRow& chip, const ir::Graph& graph, const npu::CompileOptions& options);
// For operations without any of Vela's, all accepted by supports().
Result<npu::Program> make_own_program(const hw::ChipRow& chip, const ir::Graph& graph,
                                      const npu::CompileOptions& options);

}  // namespace skillet::npus::ethosu
