// The client of the mainline kernel driver rocket, used by its row in the table of kernel drivers.
// Called by kernels/api/kernels.cpp.
// Must not know: chips.
#pragma once

#include "kernels/api/kernels.h"

namespace skillet::kernels::rocket {

KernelDriver kernel_driver();

Result<Core> read_core(const DrmFile& file);
// All cores share one node. The jobs of an open file use one core at a time; more files use more cores.
Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls);
// The first buffer may get address 0: replay places recorded buffers there.
Result<std::unique_ptr<Device>> open_device_from_0(const Core& core, const SyscallsRef& calls);
std::shared_ptr<FileRecorder> record(const SyscallsRef& calls, const std::string& node, RecordSink sink);

// Replays at the recorded addresses.
Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls);

}  // namespace skillet::kernels::rocket
