// Ops that passes rewrote for the chip but that are predicted to be faster on the CPU: they keep the model's form,
// which is faster there. Called by compile.cpp. Must not know: how passes rewrite.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/compile.h"

namespace skillet::compile {

// Adds ops that the CPU computes by predicted time, if any of them, or a part of one, was rewritten for the chip; also
// ops that were rewritten in vain, because the chip takes nothing of the result. False: there are no more.
bool keep_more(const Compiled& compiled, Kept& kept);

// True if `kept` is predicted to take noticeably longer than `before`.
bool is_slower(const Compiled& kept, const Compiled& before);

// Times on the CPU by op of the compiled graph. Ops that passes made count at most as much as the model's own op, which
// the CPU would run instead.
std::vector<double> cpu_times_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu);

}  // namespace skillet::compile
