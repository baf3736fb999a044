// Encoding: device operations -> descriptors, coefficient buffers and command streams of a Program.
// Called by driver.cpp.
// Must not know: graphs' meaning, device addresses (they become relocations).
#pragma once

#include "base/result.h"
#include "driver/driver.h"
#include "drivers/vivante/operations.h"

namespace skillet::drivers::vivante {

Result<driver::Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, Lowered lowered);

}  // namespace skillet::drivers::vivante
