// make_program(): a Program of operations that Vela made: a job each, in an arena of its own.
// Called by the driver.
// Must not know: devices.
#pragma once

#include "npu/driver.h"
#include "npus/ethosu/compiler/support.h"

namespace skillet::npus::ethosu {

Result<npu::Program> make_program(const hw::ChipRow& chip, const ir::Graph& graph, const npu::CompileOptions& options);

}  // namespace skillet::npus::ethosu
