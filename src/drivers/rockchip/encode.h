// The NPU's operations -> tasks, commands, buffers: a Program.
// Called by driver.cpp.
// Must not know: what the chip supports.
#pragma once

#include "drivers/rockchip/lower.h"

namespace skillet::drivers::rockchip {

Result<driver::Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, const Lowered& lowered,
                               const Tuning& tuning);

}  // namespace skillet::drivers::rockchip
