// Windows without weights from a model: averages, maxima, enlarged images.
// Called by support.cpp, lower.cpp.
// Must not know: tasks, registers, memory.
#pragma once

#include "npus/rockchip/compiler/moves.h"

namespace skillet::npus::rockchip {

// AVERAGE_POOL_2D, MEAN: depthwise, each weight 1.
Result<Conv> make_average(const ir::Graph& graph, ir::OpId op, const Tuning& tuning);
// The same for a part of the windows where some leave the image: one of averages_of().
Result<Conv> make_average_part(const ir::Tensor& from, const ir::Tensor& to, const Move& move,
                               ir::Activation activation, const Tuning& tuning);
// An average over all rows, columns or both of an image larger than filters can be: averages of its parts, then the
// average of those. Padding counts as 0 in both. Each step rounds; the first in units of the input.
struct AverageSteps {
  Window first, second;
  int32_t pixels = 0;  // in each result
};
std::optional<AverageSteps> average_steps(const Window& w);
// The same if it is precise enough: the first step rounds by half a step of the input; with the rounding of the result
// the error must be below one and a half steps of it.
std::optional<AverageSteps> average_steps(const Window& w, const ir::Tensor& from, const ir::Tensor& to);
struct AverageConvs {
  Conv first, second;
};
Result<AverageConvs> make_average_steps(const AverageSteps& steps, const ir::Tensor& from, const ir::Tensor& to,
                                        ir::Activation activation, const Tuning& tuning);
// The axes of MEAN, REDUCE_MAX and REDUCE_MIN; nothing if there are other axes than these, or they are computed.
struct ImageAxes {
  bool rows = false, columns = false;
};
std::optional<ImageAxes> image_axes(const ir::Graph& graph, const ir::Op& op);

// MAX_POOL_2D, REDUCE_MAX, REDUCE_MIN: the image in a border of the smallest value; then, for columns and for rows, the
// larger of an image and its copy moved by some atoms, in several steps; then the first pixel of each window.
Window maximum_window(const ir::Graph& graph, ir::OpId op);  // padding after the last window counts as image
Window border_window(const Window& w);                       // of make_border()
Window corner_window(const Window& w);                       // of make_corners()
Conv make_border(const Window& w, const Tuning& tuning);
Conv make_corners(const Window& w, const Tuning& tuning);
// The distances, in pixels, by which the steps move the image until each pixel is the largest of `size` in a row.
std::vector<int32_t> steps_to(int32_t size);

// RESIZE_NEAREST_NEIGHBOR by a whole factor, RESIZE_BILINEAR of one row or column: how often rows and columns are
// repeated. Nothing: it does more than repeat them in order.
struct Repeat {
  int32_t rows = 1, columns = 1;
};
std::optional<Repeat> repeat_of(const ir::Graph& graph, const ir::Op& op);
// The copies that one pass writes: an even number. The first may be the last one of the pass before.
struct Copies {
  int32_t first = 0, count = 0;
};
std::vector<Copies> copies_of(int32_t times);
// `count` surfaces for each surface of the input, each a row further: the rows of the surface, `times` times each.
Conv make_repeated_rows(const Plane& plane, int32_t times, const Copies& copies);
// The same for columns: each row is one pixel.
Conv make_repeated_columns(const Plane& plane, int32_t times, const Copies& copies);
uint64_t bytes_before(const Copies& copies, int32_t row_pixels);

// Each output channel is the value of this number in its window, [tap][channel]; -1: an unused channel.
void choose(Conv& conv, std::span<const int32_t> chosen);

// SPACE_TO_DEPTH: a convolution in which each output's weights select one value.
Window blocks_window(const Plane& in, const Plane& out);
Conv make_blocks(const Plane& in, const Plane& out);

}  // namespace skillet::npus::rockchip
