// Finds the chip of a capture, for the verbs that read or write captures.
// Called by `skillet decode`, `diff` and `run`.
// Must not know: a vendor's descriptors.
#pragma once

#include <string>

#include "base/result.h"
#include "npu/driver.h"

namespace skillet::tools {

// The chip that a driver identifies from the capture's device facts, or `wanted` if not empty.
Result<npu::Chip> chip_of(const capture::DeviceInfo& device, const std::string& wanted);

// True if the registers identify the same chip, regardless of its name in the device tree. False if they are not
// sufficient.
bool is_same_hardware(const npu::Driver& driver, capture::DeviceInfo a, capture::DeviceInfo b);

inline constexpr const char* kLastHelp = "only the last N submissions of a capture";

}  // namespace skillet::tools
