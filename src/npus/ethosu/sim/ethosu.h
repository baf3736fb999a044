// make_simulator(): a simulated chip with a limit of the work of a job; simulator_of() uses the limit that networks
// need. Called by ethosu.cpp, tests and the fuzz target. Must not know: how commands run.
#pragma once

#include <memory>

#include "npus/ethosu/hw/ethosu.h"
#include "sim/sim.h"

namespace skillet::sim::ethosu {

namespace hw = ::skillet::ethosu::hw;

// `work`: products and elements of one job.
std::unique_ptr<Device> make_simulator(const hw::ChipRow& chip, uint64_t work);

}  // namespace skillet::sim::ethosu
