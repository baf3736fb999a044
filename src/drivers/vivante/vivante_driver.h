// The Vivante driver's registration point.
// Called by driver/registry.cpp.
// Must not know: devices, simulators.
#pragma once

#include "driver/driver.h"

namespace skillet::drivers::vivante {

const driver::Driver& driver();

}  // namespace skillet::drivers::vivante
