// Consistency checks of an NN instruction: contradictions that would hang or corrupt a real chip are faults.
// Called by nn.cpp.
// Must not know: memory, how a job is computed.
#pragma once

#include "base/result.h"
#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/nn_coefficients.h"
#include "npus/vivante/sim/nn_job.h"
#include "npus/vivante/sim/rules.h"

namespace skillet::sim::vivante {

// Sizes, strides, tiles and requantization, before anything is read.
Result<void> check_geometry(const ::skillet::vivante::hw::NnInstruction& d,
                            const ::skillet::vivante::hw::ChipRow& chip);
// Windows of on-chip memory, against each other and against the size of the decoded coefficients.
Result<void> check_sram(const ::skillet::vivante::hw::NnInstruction& d, const ::skillet::vivante::hw::ChipRow& chip,
                        const Coefficients& coefficients);
// Compares the instruction's fields about the kernels of a core with the decoded kernels.
Result<void> check_superblocks(const ::skillet::vivante::hw::NnInstruction& d, const Coefficients& coefficients,
                               const Leniency& leniency);
// The kernel data that stays on the chip if not all of it fits: only patterns that were seen.
Result<void> check_pattern(const ::skillet::vivante::hw::NnInstruction& d, const Leniency& leniency);

NnJob make_job(const ::skillet::vivante::hw::NnInstruction& d, const ::skillet::vivante::hw::ChipRow& chip,
               TieRule rule);

}  // namespace skillet::sim::vivante
