// What the verbs that read or write captures share: which chip one is of, how an old one gives way.
// Called by `skillet decode`, `diff`, `capture` and `run`.
// Must not know: a vendor's descriptors.
#pragma once

#include <string>

#include "base/result.h"
#include "driver/driver.h"

namespace skillet::tools {

// The chip that a driver identifies from what a capture says of its device; `wanted`, where not empty, instead.
Result<driver::Chip> chip_of(const capture::DeviceInfo& device, const std::string& wanted);

// Whether the file may give way to a new capture: an earlier one, of whatever version, or nothing at all.
Result<void> check_gives_way(const std::string& path);
// Removes it. Never anything that is no capture.
Result<void> remove_capture(const std::string& path);

inline constexpr const char* kLastHelp = "only the last N submissions of a capture";

}  // namespace skillet::tools
