// The NPU as sim::Device: it runs a job as the mainline kernel does, task by task.
// Called by the emulated kernel driver, and by the tests.
// Must not know: how a kernel queues jobs.
#pragma once

#include "npus/rockchip/sim/npu.h"

namespace skillet::sim::rockchip {

// Each command list of a job is a task. It ends with a completion bit of the DPU, which the kernel sees; a job without
// one fails with ErrorCode::timeout.
Result<std::unique_ptr<Device>> create_device(std::string_view chip, const Options& options = {});
// The same for sim::create().
Result<std::unique_ptr<Device>> create(std::string_view chip);

}  // namespace skillet::sim::rockchip
