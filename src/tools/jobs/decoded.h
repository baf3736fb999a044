// What the verbs that read or write captures share: which chip one is of.
// Called by `skillet decode`, `diff` and `run`.
// Must not know: a vendor's descriptors.
#pragma once

#include <string>

#include "base/result.h"
#include "npu/driver.h"

namespace skillet::tools {

// The chip that a driver identifies from what a capture says of its device; `wanted`, where not empty, instead.
Result<npu::Chip> chip_of(const capture::DeviceInfo& device, const std::string& wanted);

inline constexpr const char* kLastHelp = "only the last N submissions of a capture";

}  // namespace skillet::tools
