// Blocks in which an operation is computed, and the places of their buffers in the chip's SHRAM (hardware
// specification, section 9). Called by support.cpp (does a block exist), coded.cpp and slices.cpp.
// Must not know: registers, weights' code.
#pragma once

#include <optional>

#include "npus/ethosu/compiler/operations.h"
#include "npus/ethosu/compiler/weights.h"

namespace skillet::npus::ethosu {

struct Tile {
  uint32_t height = 1, width = 1, depth = 1;                    // of a block of the output
  uint32_t input_height = 1, input_width = 1, input_depth = 1;  // of a block of the input
  uint32_t input_end = 0, input2_start = 0, sums_start = 0;     // in banks
};
// None if no block fits.
std::optional<Tile> tile_of(const hw::ChipRow& chip, const Operation& operation);
bool has_tile(const hw::ChipRow& chip, const Operation& operation);
Traversal traversal_of(const Operation& operation);

}  // namespace skillet::npus::ethosu
