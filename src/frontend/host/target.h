// The device that a plug-in's options name, and what is wrong with those options.
// Called by the plug-ins. Must not know: hosts, graphs.
#pragma once

#include "frontend/host/options.h"
#include "runtime/device_context.h"

namespace skillet::host {

// "auto" without an NPU is not an error unless somebody says so, and has no driver: the host's own kernels run. Adds to
// options.problems, and drops, what does not go with the device.
Result<runtime::Target> open_target(Options& options);

// Warns of the problems; with strict=1 the first one is an error.
Result<void> tell_problems(const Options& options);
// The same, each only once a process: for a host that makes several of ours from one environment.
Result<void> tell_problems_once(Options options);

}  // namespace skillet::host
