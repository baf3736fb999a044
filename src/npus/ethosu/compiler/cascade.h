// Runs of operations, cut into stripes of rows. Each operation makes the rows that the next one needs, so that only a
// few rows of the tensors between them are stored at a time, in on-chip memory (hardware specification, section 10.3).
// Called by own_program.cpp.
// Must not know: registers, where tensors are in memory.
#pragma once

#include <span>

#include "npus/ethosu/compiler/operations.h"

namespace skillet::npus::ethosu {

struct Cascaded {
  std::vector<Operation> operations;
  std::vector<uint32_t> rows;  // by tensor: rows stored at a time, each in the memory of an older one; 0: all
};
// Cascades operations whose tensors do not fit in on-chip memory. `same_as`: by tensor, the tensor whose bytes it has.
Cascaded cascade(const hw::ChipRow& chip, const ir::Graph& graph, std::vector<Operation> operations,
                 std::span<const ir::TensorId> same_as);

}  // namespace skillet::npus::ethosu
