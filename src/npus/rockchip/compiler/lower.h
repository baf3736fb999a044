// Lowers IR operations to the NPU's operations and the memory between them.
// Called by driver.cpp.
// Must not know: tasks, registers, programs.
#pragma once

#include "base/result.h"
#include "npus/rockchip/compiler/operations.h"
#include "npus/rockchip/compiler/support.h"
#include "npus/rockchip/compiler/tuning.h"

namespace skillet::npus::rockchip {

// An error names the operation that the chip does not run. `keep`: each tensor is formed, with the same bytes.
Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, bool keep);

}  // namespace skillet::npus::rockchip
