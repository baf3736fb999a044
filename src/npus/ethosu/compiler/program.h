// make_program(): a Program of one operation that Vela made, or of Skillet's own (own_program.cpp): a job, in an arena.
// Called by the driver.
// Must not know: devices.
#pragma once

#include "npu/driver.h"
#include "npus/ethosu/compiler/support.h"

namespace skillet::npus::ethosu {

Result<npu::Program> make_program(const hw::ChipRow& chip, const ir::Graph& graph, const npu::CompileOptions& options);
// Of operations none of which is Vela's, and all of which supports() took.
Result<npu::Program> make_own_program(const hw::ChipRow& chip, const ir::Graph& graph,
                                      const npu::CompileOptions& options);

}  // namespace skillet::npus::ethosu
