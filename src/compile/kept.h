// What passes rewrote for the chip's sake, though by predicted time the CPU computes it: it is faster there as the
// model has it, so it is kept so. Called by compile.cpp. Must not know: how passes rewrite.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/compile.h"

namespace skillet::compile {

// Adds what the CPU computes by predicted time, if that has something that was rewritten for the chip, or a part of it;
// and what was rewritten in vain, as the chip takes nothing that was made of it. False: there is no more.
bool keep_more(const Compiled& compiled, Kept& kept);

// What keeps more is predicted to take longer than what was before.
bool is_slower(const Compiled& kept, const Compiled& before);

// By op of the compiled graph, what the CPU takes: of what passes made, no more than the model's own op would, which is
// kept then.
std::vector<double> cpu_times_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu);

}  // namespace skillet::compile
