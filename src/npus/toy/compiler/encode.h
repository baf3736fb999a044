// Encodes the toy's operations to descriptors, commands and buffers: a Program.
// Called by the driver.
// Must not know: what the chip supports.
#pragma once

#include "npu/driver.h"
#include "npus/toy/compiler/lower.h"

namespace skillet::npus::toy {

Result<npu::Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, const std::vector<Operation>& operations,
                            const npu::CompileOptions& options);

}  // namespace skillet::npus::toy
