// How far the loops of a TP job carry its output. Called by program_check.cpp.
// Must not know: how a driver makes its jobs, buffers.
#pragma once

#include <cstdint>
#include <optional>

#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

struct TpOutput {
  uint64_t elements = 0;  // that are written; saturates
  uint64_t bytes = 0;     // from the output's base to the farthest one; saturates
};
// The windows are not empty, and tiles have sizes and distances. None: resets of the loops make it too much to follow.
std::optional<TpOutput> tp_output(const ::skillet::vivante::hw::TpInstruction& tp);

}  // namespace skillet::npus::vivante
