// Range of a quantized output: by its type and its fused activation.
// Called by CPU kernels, and by compilers of chips that get these bounds.
// Must not know: operations.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/ir/graph.h"

namespace skillet::ref {

struct Range {
  int32_t min = 0, max = 0;
};
Range type_range(ir::DType dtype);
// As TFLite's CalculateActivationRangeQuantized. Nothing for an activation that is not a range.
std::optional<Range> quantized_range(ir::Activation activation, const ir::Tensor& tensor);

}  // namespace skillet::ref
