// Windows without weights of a model: averages, maxima, enlarged images.
// Called by support.cpp, lower.cpp.
// Must not know: tasks, registers, memory.
#pragma once

#include "npus/rockchip/compiler/moves.h"

namespace skillet::npus::rockchip {

// AVERAGE_POOL_2D, MEAN: depthwise, each weight 1.
Result<Conv> make_average(const ir::Graph& graph, ir::OpId op, const Tuning& tuning);
// The same where windows leave the image: one of averages_of().
Result<Conv> make_average_part(const ir::Tensor& from, const ir::Tensor& to, const Move& move,
                               ir::Activation activation, const Tuning& tuning);
// An average of all rows, columns or both of an image larger than filters are: averages of its parts, and the average
// of those. What is beyond the image counts as 0 in both. Each step rounds; the first in units of the input.
struct AverageSteps {
  Window first, second;
  int32_t pixels = 0;  // that each result is of
};
std::optional<AverageSteps> average_steps(const Window& w);
// Where it is taken: the first step rounds by half a step of the input, with the rounding of the result less than one
// and a half of that.
std::optional<AverageSteps> average_steps(const Window& w, const ir::Tensor& from, const ir::Tensor& to);
struct AverageConvs {
  Conv first, second;
};
Result<AverageConvs> make_average_steps(const AverageSteps& steps, const ir::Tensor& from, const ir::Tensor& to,
                                        ir::Activation activation, const Tuning& tuning);
// Which axes of an image MEAN, REDUCE_MAX and REDUCE_MIN go over; nothing: others too, or they are computed.
struct ImageAxes {
  bool rows = false, columns = false;
};
std::optional<ImageAxes> image_axes(const ir::Graph& graph, const ir::Op& op);

// MAX_POOL_2D, REDUCE_MAX, REDUCE_MIN: the image in a border of the smallest value; then, for each number of columns
// and of rows, the larger of an image and itself moved by so many atoms; then of each window its first pixel.
Window maximum_window(const ir::Graph& graph, ir::OpId op);  // what follows the last window counts as image
Window border_window(const Window& w);                       // of make_border()
Window corner_window(const Window& w);                       // of make_corners()
Conv make_border(const Window& w, const Tuning& tuning);
Conv make_corners(const Window& w, const Tuning& tuning);
// By how many pixels to move, one after the other, until each pixel is the largest of `size` in a row.
std::vector<int32_t> steps_to(int32_t size);

// RESIZE_NEAREST_NEIGHBOR by a whole factor, RESIZE_BILINEAR of one row or column: how many times rows and columns are
// repeated. Nothing: it does not repeat them, or not in order.
struct Repeat {
  int32_t rows = 1, columns = 1;
};
std::optional<Repeat> repeat_of(const ir::Graph& graph, const ir::Op& op);
// Which copies one pass writes: an even number of them, of which the first may be the last one of the pass before.
struct Copies {
  int32_t first = 0, count = 0;
};
std::vector<Copies> copies_of(int32_t times);
// `count` surfaces for each surface of the input, each a row further: the surface's rows, `times` times each.
Conv make_repeated_rows(const Plane& plane, int32_t times, const Copies& copies);
// The same of columns: a row of one pixel.
Conv make_repeated_columns(const Plane& plane, int32_t times, const Copies& copies);
uint64_t bytes_before(const Copies& copies, int32_t row_pixels);

// Each output channel is the byte of that number of its window, [tap][channel]; -1: it is nobody's.
void choose(Conv& conv, std::span<const int32_t> chosen);

// SPACE_TO_DEPTH: a convolution of which each weight chooses one value.
Window blocks_window(const Plane& in, const Plane& out);
Conv make_blocks(const Plane& in, const Plane& out);

}  // namespace skillet::npus::rockchip
