// What a quantized output may be: by its type, and by a fused activation.
// Called by CPU kernels, and by compilers of chips that are given these bounds.
// Must not know: any operation.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/ir/graph.h"

namespace skillet::ref {

struct Range {
  int32_t min = 0, max = 0;
};
Range type_range(ir::DType dtype);
// As TFLite's CalculateActivationRangeQuantized. None: an activation that is no range.
std::optional<Range> quantized_range(ir::Activation activation, const ir::Tensor& tensor);

}  // namespace skillet::ref
