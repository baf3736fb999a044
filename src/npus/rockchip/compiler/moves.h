// Copies rectangles of one image to another: joins, divides and cuts images, and averages windows that leave the image.
// Called by support.cpp (does each fit), lower.cpp (which places them).
// Must not know: tasks, registers, memory.
#pragma once

#include "npus/rockchip/compiler/conv.h"

namespace skillet::npus::rockchip {

// Makes pixels of `to` from windows of `from`. Rows are read at their full length; `left` shifts their start.
struct Move {
  Plane from, to;                          // the images
  int32_t top = 0, left = 0, surface = 0;  // first window, first group of channels
  int32_t kernel_height = 1, kernel_width = 1, stride_y = 1, stride_x = 1;
  int32_t to_top = 0, to_left = 0;
  Plane size;  // of the written rectangle
};
Window window_of(const Move& move);
// Depthwise with weights of 1; sets nothing that depends on quantization.
Conv make_move(const Move& move);
uint64_t bytes_before(const Move& move);     // in `from`
uint64_t bytes_before_to(const Move& move);  // in `to`
// Pixels left out after each row of `to`.
int32_t gap_of(const Move& move);

// CONCATENATION of rows or columns: a move for each input. SPLIT, SPLIT_V: for each output. SLICE, STRIDED_SLICE: one
// move. An error is the reason why not.
Result<std::vector<Move>> moves_of(const ir::Graph& graph, const ir::Op& op);
// Converts an axis, which may count from the end: 0 is channels, 1 columns, 2 rows.
int32_t axis_from_back(const ir::Shape& shape, int32_t axis);

// Whether some windows are partly outside the image.
bool leaves_image(const Window& w);
// Windows grouped by how much of the image they cover. Error: there are too many groups.
Result<std::vector<Move>> averages_of(const Window& w);

}  // namespace skillet::npus::rockchip
