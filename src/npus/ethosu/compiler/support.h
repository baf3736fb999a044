// Operations that the chip supports: those that Vela made for it, and those that Skillet compiles itself.
// Called by the driver and program.cpp.
// Must not know: how a program is made.
#pragma once

#include "graph/ir/graph.h"
#include "npu/support.h"
#include "npus/ethosu/compiler/payload.h"

namespace skillet::npus::ethosu {

// Operands: commands, constants, the arena, fast memory (the arena again if there is none), inputs.
enum : size_t { kCommands = 0, kConstants = 1, kArena = 2, kFast = 3, kFirstInput = 4 };

bool is_vela_op(const ir::Op& op);
// The accelerator's name in Vela, or what is known about it. `made_for`: result of hw::find_configuration().
std::string accelerator_of(const hw::PayloadConfig& config, const hw::ChipRow* made_for);
// Assumptions that operations compiled by Skillet can stand on.
std::span<const npu::Assumption> assumptions();
npu::Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id);

}  // namespace skillet::npus::ethosu
