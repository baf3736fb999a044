// The client of the mainline kernel driver rocket.
// Called by tests; a row in uapi/kernels.cpp comes with a compiler for the chips behind it.
// Must not know: chips.
#pragma once

#include "uapi/device.h"

namespace skillet::uapi::rocket {

// All cores are behind one node and share the jobs of an open file; more files use more cores at once.
Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls);

}  // namespace skillet::uapi::rocket
