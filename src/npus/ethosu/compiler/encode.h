// Encodes operations as a stream of commands, and all constants that they read.
// Called by own_program.cpp.
// Must not know: operations of the graph, buffers of a program.
#pragma once

#include "npus/ethosu/compiler/placement.h"

namespace skillet::npus::ethosu {

// A command that starts a unit, and the operation that it belongs to.
struct Start {
  uint32_t word = 0;
  size_t operation = 0;
};
struct Stream {
  std::vector<uint32_t> words;  // without the end
  std::vector<Start> starts;    // in order
  Bytes constants;              // of region kConstantsRegion
};
// `coded`: by operation.
Stream encode(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Operation> operations,
              std::span<const Coded> coded, const Placement& placement);

}  // namespace skillet::npus::ethosu
