// VirtualOptions: what `skillet virtual` asks of the preloaded library, through the environment.
// Called by the virtual device node; the names also by the verb.
// Must not know: what the options do.
#pragma once

#include <string>

#include "interpose/fault_plan.h"

namespace skillet::interpose {

inline constexpr const char* kChipVariable = "SKILLET_VIRTUAL_CHIP";    // "a311d"
inline constexpr const char* kFailVariable = "SKILLET_VIRTUAL_FAIL";    // see FaultPlan
inline constexpr const char* kTraceVariable = "SKILLET_VIRTUAL_TRACE";  // 1: a line per call
inline constexpr const char* kRootVariable = "SKILLET_VIRTUAL_ROOT";    // folder of the node tree
// What a job that faults does: "reset" (default: it counts as finished, as after a hang), "error" (submit gives EIO).
inline constexpr const char* kFaultVariable = "SKILLET_VIRTUAL_FAULT";

struct VirtualOptions {
  std::string chip;
  std::string root;
  FaultPlan faults;
  bool traces = false;
  bool fault_is_error = false;

  // Wrong values are logged and taken as not set: there is nobody to return an error to.
  static VirtualOptions from_environment();
};

}  // namespace skillet::interpose
