// The NPU's operations -> tasks, commands, buffers: a Program.
// Called by driver.cpp.
// Must not know: what the chip supports.
#pragma once

#include "npus/rockchip/compiler/lower.h"

namespace skillet::npus::rockchip {

// `keep`: no tensor reuses the memory of another one, so that all can be read after a run.
Result<npu::Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, const Lowered& lowered,
                            const Tuning& tuning, bool keep);

}  // namespace skillet::npus::rockchip
