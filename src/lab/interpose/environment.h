// Environment variables by which `skillet virtual` and `skillet capture` configure the preloaded libraries, and the
// name of open nodes for `skillet top`. Called by those verbs and by the libraries.
// Must not know: what the values do.
#pragma once

namespace skillet::interpose {

inline constexpr const char* kChipVariable = "SKILLET_VIRTUAL_CHIP";    // "a311d"
inline constexpr const char* kFailVariable = "SKILLET_VIRTUAL_FAIL";    // see fake::FaultPlan
inline constexpr const char* kTraceVariable = "SKILLET_VIRTUAL_TRACE";  // 1: a line per call
inline constexpr const char* kRootVariable = "SKILLET_VIRTUAL_ROOT";    // folder of the node tree
// Result of a job that faults: "reset" (default: it counts as finished, as after a hang), "error" (submit gives EIO).
inline constexpr const char* kFaultVariable = "SKILLET_VIRTUAL_FAULT";
// Result of a call that a stock kernel does not survive: "report" (default: a line) or "abort" (the process ends).
inline constexpr const char* kMisuseVariable = "SKILLET_VIRTUAL_MISUSE";
// Milliseconds, see fake::Options::release_time. For tests, which must not depend on the host's load.
inline constexpr const char* kReleaseVariable = "SKILLET_VIRTUAL_RELEASE_MS";
// Version of the kernel driver's interface, see fake::Options::extensions: "0.0" (default, mainline) or "1.0" to "1.6".
inline constexpr const char* kInterfaceVariable = "SKILLET_VIRTUAL_INTERFACE";
inline constexpr const char* kCaptureVariable = "SKILLET_CAPTURE_FILE";
inline constexpr const char* kCaptureTraceVariable = "SKILLET_CAPTURE_TRACE";  // 1: a line per call

// Start of the name of the memfd behind an open virtual node, as shown in /proc/PID/fd; the node's path follows.
inline constexpr const char* kNodeName = "skillet-virtual-node:";

}  // namespace skillet::interpose
