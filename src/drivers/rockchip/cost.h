// What the chip takes for operations, predicted from their geometry.
// Called by driver.cpp.
// Must not know: programs, bands.
#pragma once

#include "driver/cost.h"
#include "drivers/rockchip/hw/rockchip.h"

namespace skillet::drivers::rockchip {

// Null: one core, or cores that must not run at the same time.
const driver::CostModel* costs(const skillet::rockchip::hw::ChipRow& chip);

}  // namespace skillet::drivers::rockchip
