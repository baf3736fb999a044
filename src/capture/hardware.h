// Captures that the hardware itself made (lab/mmio/): their device has a node of this start. Buffers that are side by
// side are one there, and a submission lists all that it can reach.
// Called by who writes such a capture and by who compares one.
// Must not know: any device.
#pragma once

#include "capture/capture.h"

namespace skillet::capture {

constexpr std::string_view kHardwareNode = "hardware:";
inline bool is_of_hardware(const DeviceInfo& info) { return info.node.starts_with(kHardwareNode); }

}  // namespace skillet::capture
