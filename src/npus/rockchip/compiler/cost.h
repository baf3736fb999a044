// What the chip takes for operations, predicted from their geometry.
// Called by driver.cpp.
// Must not know: programs, bands.
#pragma once

#include "npu/cost.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

// Null: one core, or cores that must not run at the same time.
const npu::CostModel* costs(const skillet::rockchip::hw::ChipRow& chip);

}  // namespace skillet::npus::rockchip
