// Coded: the block of an operation, and its weights, biases and scales as the chip reads them.
// Called by own_program.cpp; placement.cpp and encode.cpp use what it makes.
// Must not know: registers, where tensors are in memory.
#pragma once

#include "base/bytes.h"
#include "npus/ethosu/compiler/tile.h"

namespace skillet::npus::ethosu {

constexpr size_t kConstantAlign = 16;

// Bytes of Coded::bytes.
struct CodedRange {
  uint64_t offset = 0, size_bytes = 0;
};
struct Coded {
  Tile tile;
  Bytes bytes;  // of an operation without weights: none
  struct Core {
    CodedRange scales, weights;
  };
  std::vector<Core> cores;

  Coded of_stripe() const { return {.tile = tile, .bytes = {}, .cores = cores}; }  // whose bytes another one has
};
// supports() has seen that there is a block.
Coded code_of(const hw::ChipRow& chip, const ir::Graph& graph, const Operation& operation);

}  // namespace skillet::npus::ethosu
