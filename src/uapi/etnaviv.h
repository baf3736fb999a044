// The etnaviv kernel device.
// Called by open_core() and by tests.
// Must not know: chips.
#pragma once

#include "uapi/device.h"

namespace skillet::uapi::etnaviv {

// Core `core.index` of `core.info.node`.
Result<std::unique_ptr<Device>> open_device(const Core& core);

}  // namespace skillet::uapi::etnaviv
