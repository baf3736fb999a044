// Captures made by simulated hardware (lab/mmio/): the node of their device starts with this text. In these, adjacent
// buffers are merged into one, and a submission lists everything that it can reach.
// Called by code that writes or compares such captures.
// Must not know: any device.
#pragma once

#include "capture/capture.h"

namespace skillet::capture {

constexpr std::string_view kHardwareNode = "hardware:";
inline bool is_of_hardware(const DeviceInfo& info) { return info.node.starts_with(kHardwareNode); }

}  // namespace skillet::capture
