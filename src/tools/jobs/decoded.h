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

// Whether a chip by all that its registers say, whatever the device tree calls it, is the same in both. False where
// they do not say enough.
bool is_same_hardware(const npu::Driver& driver, capture::DeviceInfo a, capture::DeviceInfo b);

inline constexpr const char* kLastHelp = "only the last N submissions of a capture";

}  // namespace skillet::tools
