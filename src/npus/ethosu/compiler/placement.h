// Places and formats of a program's tensors in memory, and the weights that are copied to fast memory before their
// operation.
// Called by own_program.cpp.
// Must not know: registers, buffers of a program.
#pragma once

#include <span>

#include "npus/ethosu/compiler/coded.h"

namespace skillet::npus::ethosu {

constexpr uint32_t kBrick = 16;  // contiguous channels in a brick (NHCWB16)
// For boards with an Ethos-U65 (a board with less uses a buffer instead); the U55's arena is on its chip.
constexpr uint64_t kFastBytes = 384 * 1024;
inline bool has_fast_memory(const hw::ChipRow& chip) { return chip.product == hw::ConfigProduct::u65; }

struct Place {
  uint32_t region = 0;
  uint64_t offset = 0;
  bool is_bricks = false;
  uint32_t rows = 0;  // rows stored at a time; 0: all
};

struct Placement {
  std::vector<Place> tensors;                 // by tensor; not for constants
  std::vector<std::optional<Place>> weights;  // by operation: copy target while the operation before it runs
  uint64_t arena_bytes = 0, fast_bytes = 0;
};

// `same_as`: by tensor, the tensor whose bytes it has. `rows`: by tensor, as in Place. `scratch`: sizes of the tensors
// after the graph's. `keeps`: each tensor of the graph has bytes of its own.
Placement place(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Operation> operations,
                std::span<const uint32_t> rows, std::span<const Coded> coded, std::span<const ir::TensorId> same_as,
                std::span<const uint64_t> scratch, bool keeps);

}  // namespace skillet::npus::ethosu
