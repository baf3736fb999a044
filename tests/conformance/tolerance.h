// By how much a chip's result of an operation may differ from the CPU's, as its driver says.
// Called by the tests over random graphs and operations.
#pragma once

#include "driver/chip.h"
#include "drivers/rockchip/support.h"
#include "drivers/vivante/support.h"

namespace skillet {

inline int tolerance_of(const driver::Chip& chip, ir::OpKind kind) {
  return chip.family == "rockchip" ? drivers::rockchip::tolerance(kind) : drivers::vivante::tolerance(kind);
}

}  // namespace skillet
