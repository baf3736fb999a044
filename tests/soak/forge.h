// Forged programs: a compiler's program with a few random changes.
// Called by forged_programs.cpp. Must not know: chips, what the words mean.
#pragma once

#include <random>

#include "program/program.h"

namespace skillet::soak {

// Makes one to four changes: words, bytes and bits of constants and commands, addresses and their targets, sizes of
// buffers, the buffers that jobs list, the places of their commands, the order of jobs.
npu::Program forge(const npu::Program& program, std::mt19937& random);

}  // namespace skillet::soak
