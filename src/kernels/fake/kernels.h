// The table of emulated kernel drivers: the driver of each simulated chip.
// Called by open_simulated(), the virtual device node and FaultPlan.
// Must not know: what a driver's calls do.
#pragma once

#include "kernels/fake/kernel.h"
#include "sim/sim.h"

namespace skillet::fake {

// A kernel with `chip` as its only core. A chip without its own emulated kernel driver gets the most similar one.
std::unique_ptr<Kernel> create_kernel(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options);
// The same with the simulator of the chip; the error of sim::create() if there is none.
Result<std::unique_ptr<Kernel>> create_kernel(const std::string& chip, Options options);
// Options::schedule from SKILLET_SIM_SEED.
Result<uint32_t> schedule_from_environment();
// All names that a FaultPlan may use for the chip's kernel driver; without a chip: for any.
std::vector<std::string_view> call_names(const std::string& chip = "");

}  // namespace skillet::fake
