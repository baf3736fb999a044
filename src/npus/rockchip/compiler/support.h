// Whether the chip runs an operation, or why not.
// Called by driver.cpp, lower.cpp, placement.cpp.
// Must not know: registers.
#pragma once

#include "graph/ir/graph.h"
#include "npu/driver.h"
#include "npus/rockchip/compiler/window.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

namespace hw = ::skillet::rockchip::hw;

// `graph` has passed ir::verify(). An operation that is taken compiles in any graph and has a CPU kernel. Its result is
// within a step of that kernel's: the chip rounds once, with a 15-bit multiplier, and TFLite twice, with a 31-bit one
// (section 7.10).
npu::Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id);

// The same without the checks of the chip's own packing of registers: recorded programs contain some of what it
// refuses.
npu::Support supports_form(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id);

// For npu::Driver::made_constants().
npu::MadeConstants made_constants(const ir::Graph& graph, ir::OpId id);

// Whether the chip takes a window of these sizes.
npu::Support takes_window(const hw::ChipRow& chip, const Window& w);

}  // namespace skillet::npus::rockchip
