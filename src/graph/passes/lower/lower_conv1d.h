// A convolution over blocks of columns: contiguous columns become the channels of one pixel. A stride becomes the size
// of a block, and a long filter becomes a filter of few blocks that computes several columns at once.
// Called by lower_conv1d.cpp and lower_average_as_depthwise.cpp.
// Must not know: what a chip takes.
#pragma once

#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// Ops with the same results, bit by bit, as CONV_2D or DEPTHWISE_CONV_2D `op` (in no graph yet, or in this one),
// `outputs` columns at once. For images of one column, rows take the role of columns. Empty: the columns do not fit
// blocks, or the filter would be too large. With by_filters, a convolution with the stride of a block makes its
// channels, for chips whose RESHAPE does not move channels.
enum class Blocks : uint8_t { by_reshape, by_filters };
std::vector<ir::Op> in_blocks(Rewriter& rewriter, const ir::Op& op, int32_t outputs, Blocks by = Blocks::by_reshape);

}  // namespace skillet::passes
