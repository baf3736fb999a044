// A convolution whose columns are taken in blocks: side by side in memory, they are the channels of one pixel. A stride
// is then the size of a block, and a long filter one of few blocks that computes several columns at once.
// Called by lower_conv1d.cpp and lower_average_as_depthwise.cpp.
// Must not know: what a chip takes.
#pragma once

#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// The same bits as CONV_2D or DEPTHWISE_CONV_2D `op` (of no graph yet, or of this one), `outputs` columns at once.
// Images of one column: rows in place of columns. Empty: they do not fit blocks, or the filter would be too large.
// By `filters` a convolution with the stride of a block makes its channels, for chips whose RESHAPE moves none.
enum class Blocks : uint8_t { by_reshape, by_filters };
std::vector<ir::Op> in_blocks(Rewriter& rewriter, const ir::Op& op, int32_t outputs, Blocks by = Blocks::by_reshape);

}  // namespace skillet::passes
