// Windows without weights of a model: averages, maxima, enlarged images.
// Called by support.cpp, lower.cpp.
// Must not know: tasks, registers, memory.
#pragma once

#include "drivers/rockchip/conv.h"

namespace skillet::drivers::rockchip {

// AVERAGE_POOL_2D, MEAN: depthwise, each weight 1.
Result<Conv> make_average(const ir::Graph& graph, ir::OpId op, const Tuning& tuning);

// MAX_POOL_2D: the image in a border of the smallest value; then, for each number of columns and of rows, the larger of
// an image and itself moved by so many atoms; then of each window its first pixel.
Window maximum_window(const ir::Graph& graph, ir::OpId op);  // what follows the last window counts as image
Window border_window(const Window& w);                       // of make_border()
Window corner_window(const Window& w);                       // of make_corners()
Conv make_border(const Window& w, const Tuning& tuning);
Conv make_corners(const Window& w, const Tuning& tuning);
// By how many pixels to move, one after the other, until each pixel is the largest of `size` in a row.
std::vector<int32_t> steps_to(int32_t size);

// RESIZE_NEAREST_NEIGHBOR by a whole factor: how many times rows and columns are repeated. Nothing: it does not repeat
// them, or not in order.
struct Repeat {
  int32_t rows = 1, columns = 1;
};
std::optional<Repeat> repeat_of(const ir::Graph& graph, const ir::Op& op);
// `times` surfaces for each surface of the input, each a row further: the surface's rows, so many times each.
Conv make_repeated_rows(const Plane& plane, int32_t times);
// The same of columns: a row of one pixel.
Conv make_repeated_columns(const Plane& plane, int32_t times);

}  // namespace skillet::drivers::rockchip
