// Runs of operations, cut into stripes of rows: each makes as many rows as the next one needs, so that of the tensors
// between them a few rows are there at a time, in memory on the chip (hardware specification, section 10.3).
// Called by own_program.cpp.
// Must not know: registers, where tensors are in memory.
#pragma once

#include <span>

#include "npus/ethosu/compiler/operations.h"

namespace skillet::npus::ethosu {

struct Cascaded {
  std::vector<Operation> operations;
  std::vector<uint32_t> rows;  // by tensor: that are there at a time, each in the place of another one; 0: all
};
// Where tensors between operations have no place on the chip. `same_as`: by tensor, whose bytes it has.
Cascaded cascade(const hw::ChipRow& chip, const ir::Graph& graph, std::vector<Operation> operations,
                 std::span<const ir::TensorId> same_as);

}  // namespace skillet::npus::ethosu
