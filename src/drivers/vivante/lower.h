// Lowering: a graph of supported ops -> device operations and the memory they use (specification sections 8 and 10).
// Called by driver.cpp.
// Must not know: bit positions, weight encoding, device addresses.
#pragma once

#include "base/result.h"
#include "drivers/vivante/operations.h"
#include "drivers/vivante/tuning.h"

namespace skillet::drivers::vivante {

// Error names the op when the chip cannot run one of them.
Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning);

}  // namespace skillet::drivers::vivante
