// Graph operations as convolutions of the chip: weights, biases, gains, limits.
// Called by support.cpp (which asks whether there is one) and lower.cpp (which places it).
// Must not know: tasks, registers, memory.
#pragma once

#include "base/result.h"
#include "drivers/rockchip/tuning.h"
#include "drivers/rockchip/window.h"

namespace skillet::drivers::rockchip {

// Sizes alone.
Conv shape_of(const Window& w);
// Of make_copy().
Window copy_window(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads);

// All but places. `pads`: of a PAD in front that the convolution does itself. `in_addition`: see Conv. Errors say what
// does not fit.
Result<Conv> make_conv(const ir::Graph& graph, ir::OpId op, const Tuning& tuning, const PadAmounts& pads = {},
                       bool in_addition = false);
// The same in several passes where scales per channel are too far apart for one gain: each computes some channels and
// gives 0 for the others, so that their sum is the result. One pass: make_conv().
Result<std::vector<Conv>> make_passes(const ir::Graph& graph, ir::OpId op, const Tuning& tuning,
                                      const PadAmounts& pads);
// AVERAGE_POOL_2D, MEAN: depthwise, each weight 1.
Result<Conv> make_average(const ir::Graph& graph, ir::OpId op, const Tuning& tuning);
// The same values in another quantization, with limits: a flat identity. With a border of zeros: depthwise, one
// weight of 1.
Result<Conv> make_copy(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads, ir::Activation activation,
                       const Tuning& tuning);
// ADD and SUB: the operand with the smaller scale is multiplied, the other one is added.
struct SumScales {
  size_t main = 0;  // which input of the operation
  float unit = 1;   // real value of 1 in the sum
  float ratio = 1;  // of the other operand's scale to that
};
SumScales sum_scales(const ir::Graph& graph, const ir::Op& op);
// main + other (sign 1) or other - main (-1), element by element: a flat diagonal of `main` with `other` added.
Result<Conv> make_sum(const ir::Tensor& main, const ir::Tensor& other, const ir::Tensor& to, int32_t sign,
                      ir::Activation activation, const Tuning& tuning);

// As recorded: the addition of a tensor to a convolution, whose output becomes the sum.
Result<void> fuse_addition(const ir::Graph& graph, ir::OpId conv_op, ir::OpId add_op, const Tuning& tuning, Conv& conv);

}  // namespace skillet::drivers::rockchip
