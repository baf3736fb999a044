// Graph operations as convolutions of the chip: weights, biases, gains, limits.
// Called by support.cpp (which asks whether there is one), lower.cpp (which places it), elementwise.cpp, pooling.cpp.
// Must not know: tasks, registers, memory.
#pragma once

#include "base/result.h"
#include "npus/rockchip/compiler/tuning.h"
#include "npus/rockchip/compiler/window.h"

namespace skillet::npus::rockchip {

// Sizes alone.
Conv shape_of(const Window& w);
// Of make_copy().
Window copy_window(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads);

// All but places. `pads`: of a PAD in front that the convolution does itself. `in_addition`: see Conv. Errors say what
// does not fit.
Result<Conv> make_conv(const ir::Graph& graph, ir::OpId op, const Tuning& tuning, const PadAmounts& pads = {},
                       bool in_addition = false);
// The same convolution with stride 2 over blocks of 2x2 pixels (Form::blocks): of its taps those that no window has are
// the weights' zero point.
void read_blocks(Conv& conv);
// The same depthwise convolution of the channels from `first` on, `count` of them, with gains and limits of the whole;
// `dense`: as a direct one. Places are the whole's.
Conv channels_of(const Conv& whole, int32_t first, int32_t count, bool dense);
// The same in several passes where scales per channel are too far apart for one gain: each computes some channels and
// gives 0 for the others, so that their sum is the result. One pass: make_conv().
Result<std::vector<Conv>> make_passes(const ir::Graph& graph, ir::OpId op, const Tuning& tuning,
                                      const PadAmounts& pads);
// The same as several convolutions of some channels each, from `first_channel` on, where these have scales too far
// apart for one shift.
struct ConvPart {
  Conv conv;
  int32_t first_channel = 0;
};
Result<std::vector<ConvPart>> make_parts(const ir::Graph& graph, ir::OpId op, const Tuning& tuning,
                                         const PadAmounts& pads);
// The same values in another quantization, with limits: a flat identity. With a border of zeros: depthwise, one
// weight of 1.
Result<Conv> make_copy(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads, ir::Activation activation,
                       const Tuning& tuning);
// ---- parts of these and of others ----

constexpr int32_t kWeightZero = 128;  // a weight of 0, unsigned

// Zero point of a tensor as most registers and the host's padding have it: recorded jobs take signed bytes for unsigned
// ones (section 4.1).
int32_t register_zero(const ir::Tensor& tensor, const Tuning& tuning);

// How sums become output bytes.
struct Scales {
  float product = 1;               // real value of 1 in the sum
  std::vector<float> per_channel;  // instead
  bool whole_steps = false;        // of these: products are steps of the output, where that can be
};
// All that depends on quantization, once weights are there.
Result<void> set_values(const ir::Tensor& from, const ir::Tensor& to, const std::vector<int32_t>& bias,
                        const Scales& scales, ir::Activation activation, const Tuning& tuning, Conv& conv);
// Depthwise, weights 0 but for those of `taps`, which are 1 (all when empty).
Conv constant_depthwise(const Window& w, std::span<const int32_t> taps, const Tuning& tuning);
// Each byte of a tensor times the same weight.
Conv flat_diagonal(const Plane& plane, int32_t weight, const Tuning& tuning);
// A tensor that is added to sums of `unit`.
Result<Addition> addition_of(const ir::Tensor& other, float unit, const Tuning& tuning);

// As recorded: the addition of a tensor to a convolution, whose output becomes the sum.
Result<void> fuse_addition(const ir::Graph& graph, ir::OpId conv_op, ir::OpId add_op, const Tuning& tuning, Conv& conv);

}  // namespace skillet::npus::rockchip
