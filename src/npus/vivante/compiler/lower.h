// Lowering: a graph of supported ops -> device operations and the memory they use (specification sections 8 and 10).
// Called by driver.cpp.
// Must not know: bit positions, weight encoding, device addresses.
#pragma once

#include "base/result.h"
#include "npus/vivante/compiler/operations.h"
#include "npus/vivante/compiler/tuning.h"

namespace skillet::npus::vivante {

// Error names the op when the chip cannot run one of them. keep_intermediates: tensors whose channels only are in an
// order of the driver's own (groups.h) are also brought into the model's, so that they can be read back.
Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning,
                      bool keep_intermediates = false);

}  // namespace skillet::npus::vivante
