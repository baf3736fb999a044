// Ops that passes rewrote for the chip but that are predicted to be faster on the CPU: they keep the model's form,
// which is faster there. Called by compile.cpp. Must not know: how passes rewrite.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compile/compile.h"

namespace skillet::compile {

// Adds what the CPU computes by predicted time, if that has something that was rewritten for the chip; and what was
// rewritten in vain, as the chip takes nothing that was made of it. If there is no more: that of which the CPU computes
// a part. False: nothing of that either.
bool keep_more(const Compiled& compiled, Kept& kept);

// Of what passes made of an op the chip does not take what computes most, such as a convolution whose scales could not
// be merged: the rest would only move its data there and back. With the chip's reasons, by source.
Kept in_vain(const Compiled& compiled, std::span<const npu::Support> support);

// What keeps more is predicted to take longer than what was before, of which the CPU takes so much more than was
// counted: `excess_us()` of both.
bool is_slower(const Compiled& kept, const Compiled& before, double kept_excess_us, double before_excess_us);

// What the CPU takes longer for ops that passes made, and it computes, than for the model's own that stand for them.
double excess_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu);

// Times on the CPU by op of the compiled graph. Ops that passes made count at most as much as the model's own op, which
// the CPU would run instead.
std::vector<double> cpu_times_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu);

}  // namespace skillet::compile
