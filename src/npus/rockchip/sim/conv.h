// Reads the CNA and CORE registers into a ConvJob.
// Called by core.cpp.
// Must not know: commands, the DPU, how sums are computed.
#pragma once

#include "npus/rockchip/sim/conv_job.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

// Error if the registers contradict each other, exceed the chip's limits, or use something that is not modelled.
Result<ConvJob> read_conv_job(Registers& registers, const hw::ChipRow& chip, const Options& options);

}  // namespace skillet::sim::rockchip
