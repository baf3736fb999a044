// Programs that somebody has tampered with: a few changes, drawn at random, of one that a compiler made.
// Called by forged_programs.cpp. Must not know: chips, what the words mean.
#pragma once

#include <random>

#include "program/program.h"

namespace skillet::soak {

// One to four changes: words, bytes and bits of constants and commands, addresses and what they point to, sizes of
// buffers, which buffers jobs list, where their commands are, the order of jobs.
npu::Program forge(const npu::Program& program, std::mt19937& random);

}  // namespace skillet::soak
