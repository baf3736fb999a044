// RESIZE_BILINEAR, MIRROR_PAD and AVERAGE_POOL_2D of images that are too large for a filter with a weight for each pair
// of pixels. Called by lower_resize_as_conv.cpp. Must not know: chips.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// Rows first, then columns: 1x1 convolutions over images whose channels are the rows, or the columns.
void resize_by_axes(Rewriter& rewriter, ir::OpId id);
// The same of AVERAGE_POOL_2D.
void average_by_axes(Rewriter& rewriter, ir::OpId id);
// By a whole factor: edges repeated, each pixel repeated, and a depthwise convolution that averages. A mirrored edge is
// made of its rows and columns.
void resize_by_edges(Rewriter& rewriter, ir::OpId id);

// True for an image of bytes whose quantization stays, if the op's other operands are constant.
bool is_resized_image(const Rewriter& rewriter, const ir::Op& op);

// MIRROR_PAD, for rows and for columns: which of them go before and after the image, in order. Nothing if the op pads
// something else.
struct MirroredEdges {
  std::vector<int32_t> before, behind;
};
std::optional<std::array<MirroredEdges, 2>> mirrored_edges(const Rewriter& rewriter, const ir::Op& op);

}  // namespace skillet::passes
