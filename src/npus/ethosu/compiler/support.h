// Which operations the chip takes: those that Vela made for it, and what Skillet compiles itself.
// Called by the driver and program.cpp.
// Must not know: how a program is made.
#pragma once

#include "graph/ir/graph.h"
#include "npu/support.h"
#include "npus/ethosu/compiler/payload.h"

namespace skillet::npus::ethosu {

// Operands of the operation: commands, constants, the arena, fast memory (the arena again where there is none), inputs.
enum : size_t { kCommands = 0, kConstants = 1, kArena = 2, kFast = 3, kFirstInput = 4 };

bool is_vela_op(const ir::Op& op);
// As Vela names it, or what is known of it. `made_for`: as hw::find_configuration() found it.
std::string accelerator_of(const hw::PayloadConfig& config, const hw::ChipRow* made_for);
// What those that Skillet compiles may stand on.
std::span<const npu::Assumption> assumptions();
npu::Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id);

}  // namespace skillet::npus::ethosu
