// Reads the CNA and CORE registers into a ConvJob.
// Called by core.cpp.
// Must not know: commands, the DPU, how sums are computed.
#pragma once

#include "npus/rockchip/sim/conv_job.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

// Error when the registers contradict each other, leave the chip's limits or ask for what is not modelled.
Result<ConvJob> read_conv_job(Registers& registers, const hw::ChipRow& chip, const Options& options);

}  // namespace skillet::sim::rockchip
