// Computes each row of an image as a weighted sum of the rows of another image, then the same for columns, with integer
// weights: 1x1 convolutions over images whose channels are the rows or columns, with TRANSPOSE before and after.
// Called by resize_by_axes.cpp and lower_dilation_as_phases.cpp.
// Must not know: which op they stand for.
#pragma once

#include <vector>

#include "graph/passes/lower/mixture.h"

namespace skillet::passes {

// For each row or column of the result: its sources, with parts that add up to `whole`. No source: it is zero.
struct AxisParts {
  std::vector<std::vector<MixturePart>> places;
  int32_t whole = 64;
};

// The operations from one image to another with the same quantization. Empty if transposes would take longer than the
// CPU.
std::vector<ir::Op> by_axes(Rewriter& rewriter, ir::TensorId from, ir::TensorId to, const AxisParts& rows,
                            const AxisParts& columns, ir::Activation activation = ir::Activation::none);

}  // namespace skillet::passes
