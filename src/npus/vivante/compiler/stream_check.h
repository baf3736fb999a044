// The coefficients of an NN job as far as they say what memory the job touches: their length, and, in V7's streams,
// where each kernel writes. Called by program_check.cpp. Must not know: weights, buffers.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

namespace hw = ::skillet::vivante::hw;

// `bytes`: those that are stored, from the first on; what follows is zeros.
// Header, streams and biases; none: they are in no format that compile() writes for the chip.
std::optional<uint64_t> coefficient_bytes(const hw::ChipRow& chip, const hw::NnInstruction& nn,
                                          std::span<const uint8_t> bytes);
// Of a job that refused_job() takes. Words for what compile() does not write: a header of another kind, streams that do
// not fit the job's window of on-chip memory, a V7 kernel whose output is not the plane that the order of kernels gives
// it; empty: there is nothing. The weights are not looked at.
std::string refused_coefficients(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::span<const uint8_t> bytes);

}  // namespace skillet::npus::vivante
