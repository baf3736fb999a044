// Checks in the coefficients of an NN job what determines the memory that the job touches: their length, and, in V7's
// streams, the plane that each kernel writes. Called by program_check.cpp. Must not know: weights, buffers.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

namespace hw = ::skillet::vivante::hw;

// Size of header, streams and biases; none: no format that compile() writes for the chip. `bytes`: the stored ones,
// from the first on; zeros follow.
std::optional<uint64_t> coefficient_bytes(const hw::ChipRow& chip, const hw::NnInstruction& nn,
                                          std::span<const uint8_t> bytes);
// For a job that refused_job() accepts. Returns what compile() does not write: a header of another kind, streams that
// do not fit the job's window of on-chip memory, a V7 kernel whose output is not the plane given by the order of
// kernels; empty if there is nothing. Weights are not checked.
std::string refused_coefficients(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::span<const uint8_t> bytes);

}  // namespace skillet::npus::vivante
