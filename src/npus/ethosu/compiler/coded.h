// Coded: the block of an operation, and its weights, biases and scales in the chip's format.
// Called by own_program.cpp; used by placement.cpp and encode.cpp.
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
  Bytes bytes;  // empty for an operation without weights
  struct Core {
    CodedRange scales, weights;
  };
  std::vector<Core> cores;

  Coded of_stripe() const { return {.tile = tile, .bytes = {}, .cores = cores}; }  // for bytes of another stripe
};
// supports() has checked that a block exists.
Coded code_of(const hw::ChipRow& chip, const ir::Graph& graph, const Operation& operation);

}  // namespace skillet::npus::ethosu
