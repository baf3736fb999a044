// Each row of an image as a sum of rows of another, in whole parts, then each column: as 1x1 convolutions over images
// whose channels are the rows, or the columns, with TRANSPOSE around them.
// Called by resize_by_axes.cpp and lower_dilation_as_phases.cpp.
// Must not know: which op they stand for.
#pragma once

#include <vector>

#include "graph/passes/lower/mixture.h"

namespace skillet::passes {

// Of each row or column of the result: of which ones it is made, in parts that add up to `whole`. Of none: it is zero.
struct AxisParts {
  std::vector<std::vector<MixturePart>> places;
  int32_t whole = 64;
};

// From one image to another that means the same. Empty: transposes would take longer than the CPU does.
std::vector<ir::Op> by_axes(Rewriter& rewriter, ir::TensorId from, ir::TensorId to, const AxisParts& rows,
                            const AxisParts& columns, ir::Activation activation = ir::Activation::none);

}  // namespace skillet::passes
