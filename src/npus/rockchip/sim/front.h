// The functions that read the registers of a chip: the only difference between the units of the family's chips.
// Called by core.cpp.
// Must not know: what happens to the jobs.
#pragma once

#include "npus/rockchip/sim/conv.h"
#include "npus/rockchip/sim/dpu.h"
#include "npus/rockchip/sim/ppu.h"

namespace skillet::sim::rockchip {

struct Front {
  Result<ConvJob> (*read_conv_job)(Registers&, const hw::ChipRow&, const Options&);
  // `conv` is null if the DPU runs alone.
  Result<DpuJob> (*read_dpu_job)(Registers&, const ConvJob*, const Options&);
  Result<PoolJob> (*read_pool_job)(Registers&, const Options&);
};
const Front& front_of(const hw::ChipRow& chip);

namespace rk3576 {
Result<ConvJob> read_conv_job(Registers& registers, const hw::ChipRow& chip, const Options& options);
Result<DpuJob> read_dpu_job(Registers& registers, const ConvJob* conv, const Options& options);
Result<PoolJob> read_pool_job(Registers& registers, const Options& options);
}  // namespace rk3576

}  // namespace skillet::sim::rockchip
