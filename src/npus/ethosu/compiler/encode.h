// Operations as a stream of commands, and all constants that they read.
// Called by program.cpp.
// Must not know: operations of the graph, buffers of a program.
#pragma once

#include <functional>

#include "base/bytes.h"
#include "npus/ethosu/compiler/operations.h"

namespace skillet::npus::ethosu {

struct Stream {
  std::vector<uint32_t> words;  // without the end
  Bytes constants;              // of region kConstantsRegion
};
// `offset_of`: where a tensor that is no constant begins in the arena.
Stream encode(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Operation> operations,
              const std::function<uint64_t(ir::TensorId)>& offset_of);

}  // namespace skillet::npus::ethosu
