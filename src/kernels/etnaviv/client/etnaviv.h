// The client of the mainline kernel driver etnaviv, used by its row in the table of kernel drivers.
// Called by kernels/api/kernels.cpp.
// Must not know: chips.
#pragma once

#include "kernels/api/kernels.h"

namespace skillet::kernels::etnaviv {

KernelDriver kernel_driver();

Result<Core> read_core(const DrmFile& file, uint32_t index);
// Core `core.index` of `core.info.node`.
Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls);
std::shared_ptr<FileRecorder> record(const SyscallsRef& calls, const std::string& node, RecordSink sink);

// Replays at the recorded addresses.
Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls);

}  // namespace skillet::kernels::etnaviv
