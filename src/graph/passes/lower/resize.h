// RESIZE_BILINEAR and MIRROR_PAD of images that are too large for a filter with a weight for each pair of pixels.
// Called by lower_resize_as_conv.cpp.
// Must not know: chips.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "graph/passes/rewrite.h"

namespace skillet::passes {

// Along rows, then along columns: 1x1 convolutions over images whose channels are the rows, or the columns.
void resize_by_axes(Rewriter& rewriter, ir::OpId id);
// By a whole factor: edges repeated, each pixel repeated, and a depthwise convolution that averages. A mirrored edge is
// made of its rows and columns.
void resize_by_edges(Rewriter& rewriter, ir::OpId id);

// Both amounts are all constant, of an image of bytes whose meaning stays.
bool is_resized_image(const Rewriter& rewriter, const ir::Op& op);

// Of MIRROR_PAD, for rows and for columns: which of them are before the image and behind it, in order. Nothing: it pads
// something else.
struct MirroredEdges {
  std::vector<int32_t> before, behind;
};
std::optional<std::array<MirroredEdges, 2>> mirrored_edges(const Rewriter& rewriter, const ir::Op& op);

}  // namespace skillet::passes
