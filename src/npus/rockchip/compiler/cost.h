// Times of operations on the chip, predicted from their geometry.
// Called by driver.cpp.
// Must not know: programs, bands.
#pragma once

#include <optional>

#include "npu/cost.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

// None if the chip has one core, or cores that must not run at the same time.
std::optional<npu::CostModel> costs(const skillet::rockchip::hw::ChipRow& chip, const npu::Measured& measured);

}  // namespace skillet::npus::rockchip
