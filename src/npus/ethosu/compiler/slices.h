// Convolutions with more weights than fit into the memory on the chip, in slices of their output's channels.
// Called by own_program.cpp.
// Must not know: registers, where tensors are in memory.
#pragma once

#include <vector>

#include "npus/ethosu/compiler/operations.h"

namespace skillet::npus::ethosu {

// Weights of a slice are copied to the chip while the slice before it runs. Only where the chip has such memory.
std::vector<Operation> slice(const hw::ChipRow& chip, std::vector<Operation> operations);

}  // namespace skillet::npus::ethosu
