// The toy's operations -> descriptors, commands, buffers: a Program.
// Called by the driver.
// Must not know: what the chip supports.
#pragma once

#include "driver/driver.h"
#include "drivers/toy/lower.h"

namespace skillet::drivers::toy {

Result<driver::Program> encode(const hw::ChipRow& chip, const ir::Graph& graph,
                               const std::vector<Operation>& operations, const driver::CompileOptions& options);

}  // namespace skillet::drivers::toy
