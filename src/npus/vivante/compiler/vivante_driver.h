// The Vivante driver's registration point.
// Called by npu/registry.cpp.
// Must not know: devices, simulators.
#pragma once

#include "npu/driver.h"

namespace skillet::npus::vivante {

const npu::Driver& driver();

}  // namespace skillet::npus::vivante
