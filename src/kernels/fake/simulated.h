// Simulated devices: a chip in this process, with its emulated kernel driver and the client code of that driver. Called
// by runtime/ and by tests. Must not know: what runs on them.
#pragma once

#include <memory>
#include <string>

#include "kernels/api/device.h"
#include "sim/sim.h"

namespace skillet::fake {

// A core of an emulated kernel driver, and how to reach it: kernels::open_core(core, calls).
struct SimulatedCore {
  kernels::Core core;
  kernels::SyscallsRef calls;
};

// "sim:a311d": the simulator of a chip. A job that it stops is an error of submit(), with its reason. `quirks`: as for
// sim::create().
Result<SimulatedCore> simulated_core(const std::string& chip_name, const std::string& quirks = "");
// The same for recorded jobs, which may write buffers that they do not list.
Result<SimulatedCore> simulated_core_for_replay(const std::string& chip_name, const std::string& quirks = "");
// "null:a311d": accepts submissions and runs nothing, to time everything else.
Result<SimulatedCore> null_core(const std::string& chip_name);
// A simulator provided by the caller, at `node`; lists of jobs are not checked.
Result<SimulatedCore> core_of(std::unique_ptr<sim::Device> simulator, const std::string& chip_name,
                              const std::string& node);

Result<std::unique_ptr<kernels::Device>> open_simulated(const std::string& chip_name, const std::string& quirks = "");

}  // namespace skillet::fake
