// How far the loops of a TP job reach in its output. Called by program_check.cpp.
// Must not know: how a driver makes its jobs, buffers.
#pragma once

#include <cstdint>
#include <optional>

#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

struct TpOutput {
  uint64_t elements = 0;  // written elements; saturates
  uint64_t bytes = 0;     // from the output's base to the farthest element; saturates
};
// The windows must not be empty, and tiles must have sizes and distances. None: too many resets of the loops to follow.
std::optional<TpOutput> tp_output(const ::skillet::vivante::hw::TpInstruction& tp);

}  // namespace skillet::npus::vivante
