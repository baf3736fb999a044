// Ops that passes rewrote for the chip but that are predicted to be faster on the CPU: they keep the model's form,
// which is faster there. Called by compile.cpp. Must not know: how passes rewrite.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compile/compile.h"
#include "npu/support.h"

namespace skillet::compile {

// Adds rewritten ops that the CPU computes by predicted time, and ops that were rewritten in vain, because the chip
// takes nothing of the result. If there are none: ops of which the CPU computes a part. False if it adds nothing.
bool keep_more(const Compiled& compiled, Kept& kept);

// Ops of whose rewritten form the chip refuses the heaviest part, such as a convolution whose scales could not be
// merged: the rest would only move its data to the NPU and back. With the chip's reasons, by source.
Kept in_vain(const Compiled& compiled, std::span<const npu::Support> support);

// The CPU computes an op of the model in the chip's form, which takes longer than the model's, if the NPU has a piece
// of it. Moves the other pieces of ops that are in part predicted to be faster on the CPU; false: there are none.
bool join_pieces(const ir::Graph& graph, std::vector<npu::Support>& support);

// Whether the division that keeps more ops is predicted to be slower than the one before. The excess is excess_us() of
// each.
bool is_slower(const Compiled& kept, const Compiled& before, double kept_excess_us, double before_excess_us);

// By how much the CPU is slower with rewritten ops that it computes than with the model's own ops, in us.
double excess_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu);

// Times on the CPU by op of the compiled graph. Ops that passes made count at most as much as the model's own op, which
// the CPU would run instead.
std::vector<double> cpu_times_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu);

}  // namespace skillet::compile
