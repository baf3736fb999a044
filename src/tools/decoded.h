// A capture, decoded by the driver that its device or chip name belongs to.
// Called by `skillet decode`; chip_of() also by `skillet diff`.
// Must not know: a vendor's descriptors.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/driver.h"

namespace skillet::tools {

struct DecodedCapture {
  driver::Chip chip;
  capture::DeviceInfo device;
  std::vector<driver::Annotated> submissions;
};

// The chip that the capture names or that a driver identifies; `wanted`, where not empty, instead.
Result<driver::Chip> chip_of(const capture::Capture& capture, const std::string& wanted);

// `path`: a capture file or a golden folder. `chip`: overrides what the capture says; empty: ask the capture.
Result<DecodedCapture> decode_capture(const std::string& path, const std::string& chip);

}  // namespace skillet::tools
