// Whether the toy runs an operation, or why not.
// Called by the driver.
// Must not know: how it is lowered.
#pragma once

#include "driver/support.h"
#include "drivers/toy/hw/toy.h"
#include "ir/graph.h"

namespace skillet::drivers::toy {

namespace hw = ::skillet::toy::hw;

driver::Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id);

}  // namespace skillet::drivers::toy
