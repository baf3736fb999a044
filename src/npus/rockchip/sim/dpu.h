// Reads the DPU and DPU_RDMA registers into a DpuJob.
// Called by core.cpp.
// Must not know: commands, the stages' arithmetic.
#pragma once

#include "npus/rockchip/sim/dpu_job.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

// `conv`: the job whose sums the CORE sends; null if the task runs the DPU alone.
Result<DpuJob> read_dpu_job(Registers& registers, const ConvJob* conv, const Options& options);

}  // namespace skillet::sim::rockchip
