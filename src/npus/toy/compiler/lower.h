// Lowers IR operations to the toy's operations, without addresses and bits.
// Called by the driver.
// Must not know: descriptors, programs.
#pragma once

#include <vector>

#include "base/result.h"
#include "npus/toy/compiler/support.h"

namespace skillet::npus::toy {

// result = max(first, second, least), element by element.
struct Operation {
  ir::OpId op = -1;
  ir::TensorId first = ir::kNoTensor, second = ir::kNoTensor, result = ir::kNoTensor;
  uint32_t elems = 0;
  uint32_t least = 0;
};

// An error names the operation that the chip does not run.
Result<std::vector<Operation>> lower(const hw::ChipRow& chip, const ir::Graph& graph);

}  // namespace skillet::npus::toy
