// The assumptions without a recorded job that an operation's program stands on, by name: rows of assumptions.def.
// Called by support.cpp and driver.cpp.
// Must not know: registers, other reasons why the chip may not take an operation.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "npu/support.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

namespace hw = ::skillet::vivante::hw;

std::span<const npu::Assumption> assumptions();

// For an operation that the chip takes, in the order of the rows. Empty: it is proven.
std::vector<const npu::Assumption*> assumptions_of(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op);

// Why an operation that stands on this assumption is unproven.
std::string_view reason_of(const npu::Assumption& assumption);

}  // namespace skillet::npus::vivante
