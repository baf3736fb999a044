// Graph operations as convolutions of the chip: weights, biases, gains, limits.
// Called by support.cpp (whether there is such a convolution), lower.cpp (which places it), elementwise.cpp,
// pooling.cpp.
// Must not know: tasks, registers, memory.
#pragma once

#include "base/result.h"
#include "npus/rockchip/compiler/tuning.h"
#include "npus/rockchip/compiler/window.h"

namespace skillet::npus::rockchip {

// Sizes only.
Conv shape_of(const Window& w);
// The window of make_copy().
Window copy_window(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads);

// All except places. `pads`: of a preceding PAD that the convolution does itself. `in_addition`: see Conv. An error
// names what does not fit.
Result<Conv> make_conv(const ir::Graph& graph, ir::OpId op, const Tuning& tuning, const PadAmounts& pads = {},
                       bool in_addition = false);
// Makes it the same convolution with stride 2 over blocks of 2x2 pixels (Form::blocks). Taps of blocks that are outside
// the window get the weights' zero point.
void read_blocks(Conv& conv);
// `count` channels of a depthwise convolution from `first` on, with gains and limits of the whole; `dense`: as a direct
// convolution. Places are those of the whole.
Conv channels_of(const Conv& whole, int32_t first, int32_t count, bool dense);
// The same in several passes where scales per channel are too far apart for one gain. Each pass computes some channels
// and gives 0 for the others, so that the sum of all passes is the result. A single pass equals make_conv().
Result<std::vector<Conv>> make_passes(const ir::Graph& graph, ir::OpId op, const Tuning& tuning,
                                      const PadAmounts& pads);
// The same as several convolutions of some channels each, from `first_channel` on, where scales are too far apart for
// one shift.
struct ConvPart {
  Conv conv;
  int32_t first_channel = 0;
};
Result<std::vector<ConvPart>> make_parts(const ir::Graph& graph, ir::OpId op, const Tuning& tuning,
                                         const PadAmounts& pads);
// The same values in another quantization, with limits: a flat identity. With a border of zeros it is depthwise, with
// one weight of 1.
Result<Conv> make_copy(const ir::Tensor& from, const ir::Tensor& to, const PadAmounts& pads, ir::Activation activation,
                       const Tuning& tuning);
// ---- building blocks of these and of other convolutions ----

constexpr int32_t kWeightZero = 128;  // a weight of 0, unsigned

// Zero point of a tensor as most registers and the host's padding use it: recorded jobs treat signed bytes as unsigned
// ones (section 4.1).
int32_t register_zero(const ir::Tensor& tensor, const Tuning& tuning);

// How sums are converted to output bytes.
struct Scales {
  float product = 1;               // real value of 1 in the sum
  std::vector<float> per_channel;  // if not empty, replaces `product`
  bool whole_steps = false;        // with per_channel: products are in steps of the output, where possible
};
// Sets all that depends on quantization; needs the weights.
Result<void> set_values(const ir::Tensor& from, const ir::Tensor& to, const std::vector<int32_t>& bias,
                        const Scales& scales, ir::Activation activation, const Tuning& tuning, Conv& conv);
// Depthwise, with weights of 1 at `taps` (all when empty) and 0 elsewhere.
Conv constant_depthwise(const Window& w, std::span<const int32_t> taps, const Tuning& tuning);
// Each byte of a tensor times the same weight.
Conv flat_diagonal(const Plane& plane, int32_t weight, const Tuning& tuning);
// The addition of a tensor to sums of `unit`.
Result<Addition> addition_of(const ir::Tensor& other, float unit, const Tuning& tuning);

// As recorded: fuses the addition of a tensor into a convolution, whose output becomes the sum.
Result<void> fuse_addition(const ir::Graph& graph, ir::OpId conv_op, ir::OpId add_op, const Tuning& tuning, Conv& conv);

}  // namespace skillet::npus::rockchip
