// The client of the mainline kernel driver rocket, as its row in the table of kernel drivers names it.
// Called by kernels/api/kernels.cpp.
// Must not know: chips.
#pragma once

#include "kernels/api/kernels.h"

namespace skillet::kernels::rocket {

KernelDriver kernel_driver();

Result<Core> read_core(const DrmFile& file);
// All cores are behind one node and share the jobs of an open file; more files use more cores at once.
Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls);
// Where the first buffer may get address 0: replay places those of others there.
Result<std::unique_ptr<Device>> open_device_from_0(const Core& core, const SyscallsRef& calls);
std::shared_ptr<FileRecorder> record(const SyscallsRef& calls, const std::string& node, RecordSink sink);

// At the addresses that were recorded.
Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls);

}  // namespace skillet::kernels::rocket
