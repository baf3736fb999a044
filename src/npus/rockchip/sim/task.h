// A task's commands as the registers that they leave, for those who read jobs and do not run them.
// Called by timing.cpp and weights.cpp.
// Must not know: what the registers do.
#pragma once

#include "npus/rockchip/sim/dma.h"
#include "npus/rockchip/sim/options.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

// Which blocks the task starts.
Result<uint32_t> read_task(Registers& registers, const Dma& dma, const Commands& task, const Options& options);
// They have run.
void finish_task(Registers& registers, uint32_t blocks);

}  // namespace skillet::sim::rockchip
