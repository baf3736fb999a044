// Lowers a graph of supported ops to device operations and the memory they use (specification sections 8 and 10).
// Called by driver.cpp.
// Must not know: bit positions, weight encoding, device addresses.
#pragma once

#include "base/result.h"
#include "npus/vivante/compiler/operations.h"
#include "npus/vivante/compiler/tuning.h"

namespace skillet::npus::vivante {

// An error names an op that the chip cannot run. keep_intermediates: tensors whose channels are only in an order of the
// driver (groups.h) are also sorted into the model's order, so that they can be read back.
Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning,
                      bool keep_intermediates = false);

}  // namespace skillet::npus::vivante
