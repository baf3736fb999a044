// The table of emulated kernel drivers: which of them a simulated chip has.
// Called by open_simulated(), the virtual device node and FaultPlan.
// Must not know: what a driver's calls do.
#pragma once

#include "kernels/fake/kernel.h"
#include "sim/sim.h"

namespace skillet::fake {

// A kernel whose only core is `chip`. A chip without an emulated kernel driver of its own has the nearest one.
std::unique_ptr<Kernel> create_kernel(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options);
// The same with the simulator of the chip; the error of sim::create() when there is none.
Result<std::unique_ptr<Kernel>> create_kernel(const std::string& chip, Options options);
// Options::schedule from SKILLET_SIM_SEED.
Result<uint32_t> schedule_from_environment();
// All that a FaultPlan may name of the chip's kernel; without a chip: of any.
std::vector<std::string_view> call_names(const std::string& chip = "");

}  // namespace skillet::fake
