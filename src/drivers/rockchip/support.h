// Whether the chip runs an operation, or why not.
// Called by driver.cpp and lower.cpp.
// Must not know: registers.
#pragma once

#include "driver/support.h"
#include "drivers/rockchip/hw/rockchip.h"
#include "ir/graph.h"

namespace skillet::drivers::rockchip {

namespace hw = ::skillet::rockchip::hw;

driver::Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id);

}  // namespace skillet::drivers::rockchip
