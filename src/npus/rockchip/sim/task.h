// Reads a task's commands into registers, for code that reads jobs without running them.
// Called by timing.cpp and weights.cpp.
// Must not know: what the registers do.
#pragma once

#include "npus/rockchip/sim/dma.h"
#include "npus/rockchip/sim/options.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

// Returns the blocks that the task starts.
Result<uint32_t> read_task(Registers& registers, const Dma& dma, const Commands& task, const Options& options);
// Marks these blocks as run.
void finish_task(Registers& registers, uint32_t blocks);

}  // namespace skillet::sim::rockchip
