// Whether the toy runs an operation, or why not.
// Called by the driver.
// Must not know: how it is lowered.
#pragma once

#include "graph/ir/graph.h"
#include "npu/support.h"
#include "npus/toy/hw/toy.h"

namespace skillet::npus::toy {

namespace hw = ::skillet::toy::hw;

npu::Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id);

}  // namespace skillet::npus::toy
