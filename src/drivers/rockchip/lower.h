// IR operations -> the NPU's operations and the memory between them.
// Called by driver.cpp.
// Must not know: tasks, registers, programs.
#pragma once

#include "base/result.h"
#include "drivers/rockchip/operations.h"
#include "drivers/rockchip/support.h"
#include "drivers/rockchip/tuning.h"

namespace skillet::drivers::rockchip {

// The error names the operation that the chip does not run. `keep`: each tensor is formed, with the same bytes.
Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, bool keep);

}  // namespace skillet::drivers::rockchip
