// Convolutions with more weights than fit in on-chip memory, in slices of output channels.
// Called by own_program.cpp.
// Must not know: registers, where tensors are in memory.
#pragma once

#include <vector>

#include "npus/ethosu/compiler/operations.h"

namespace skillet::npus::ethosu {

// The weights of a slice are copied to on-chip memory while the previous slice runs. Only for chips with such memory.
std::vector<Operation> slice(const hw::ChipRow& chip, std::vector<Operation> operations);

}  // namespace skillet::npus::ethosu
