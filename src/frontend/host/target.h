// The device that a plug-in's options name, and errors in those options.
// Called by the plug-ins. Must not know: hosts, graphs.
#pragma once

#include "frontend/host/options.h"
#include "runtime/device_context.h"

namespace skillet::host {

// "auto" without an NPU is an error only with strict or require_npu; otherwise the target has no driver and the host's
// own kernels run. Options that do not fit the device are dropped and added to options.problems.
Result<runtime::Target> open_target(Options& options);

// Warns of the problems. With strict=1 the first problem is an error.
Result<void> tell_problems(const Options& options);
// Warns of each problem once a process: one host makes several plug-ins from one environment.
Result<void> tell_problems_once(Options options);

}  // namespace skillet::host
