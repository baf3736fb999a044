// simulate(): the simulated kernel device around any sim::Device.
// Called by open_simulated() and by tests that bring a chip of their own.
// Must not know: which chips there are.
#pragma once

#include <memory>

#include "sim/sim.h"
#include "uapi/device.h"

namespace skillet::uapi {

// etnaviv's conventions: user space addresses from 0x00400000 up, each buffer zeroed and aligned to 4096 bytes;
// a submission sees only the buffers it lists; submit() runs to the end, and a fault is ErrorCode::device.
std::unique_ptr<Device> simulate(std::unique_ptr<sim::Device> chip, capture::DeviceInfo info);

}  // namespace skillet::uapi
