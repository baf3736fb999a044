// Which ops the chip runs, and why not. Geometry and quantization helpers that support and lowering share.
// Called by driver.cpp and lower.cpp.
// Must not know: bit positions, weight encoding.
#pragma once

#include "graph/ir/graph.h"
#include "npu/support.h"
#include "npus/vivante/compiler/numerics.h"
#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

// `graph` has passed ir::verify(). An op that is taken compiles in any graph and has a CPU kernel; its result is within
// tolerance() of that kernel's.
npu::Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op);
// Whether the chip takes the op, without the assumptions that it stands on.
npu::Support check_op(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op);

// Steps of the output by which a result may differ from the CPU's for the same input. 1: the chip rounds once, with a
// 15-bit multiplier, and TFLite twice, with a 31-bit one; data movement is exact. 2: additions whose 8-bit weights are
// too coarse for 1, because the output is much finer than an operand; scales for which 2 is not enough are refused.
int tolerance(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op);

// QUANTIZE to the type of the other sign with the same values: the same bytes in the chip's memory.
bool is_sign_change(const ir::Graph& graph, const ir::Op& op);

// TRANSPOSE that needs no job: the same tensor in its other layout, under another name.
bool is_other_layout(const ir::Graph& graph, const ir::Op& op);

// Innermost three dimensions as an image; a shape of lower rank has 1 for the outer ones.
Image image_of(const ir::Shape& shape);

// Shape of a convolution or depthwise convolution. A fully connected layer has a 1x1 filter, or a filter as large as
// the image if the chip reads filters as lists (section 8.7).
struct ConvShape {
  Image in, out;
  int32_t kernel_height = 1, kernel_width = 1;
  int32_t stride = 1;
  int32_t pad_x = 0, pad_y = 0;  // before
  bool depthwise = false;
  bool pointwise = false;  // a 1x1 filter that is treated as one
  int32_t multiplier = 1;  // depthwise: output channels per input channel
  bool divided = false;    // channels with another scale of weights are in another job
};
ConvShape conv_shape(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op);
// Depthwise filters that the chip runs unchanged; others are written out for all channels.
bool is_native_depthwise(const hw::ChipRow& chip, const ConvShape& shape);

// How a convolution with stride 2 is computed (section 8.1).
enum class StrideMethod : uint8_t { none, first_pixel, reshuffle };
StrideMethod stride_method(const hw::ChipRow& chip, const ConvShape& shape);
// The input of a convolution by StrideMethod::reshuffle: four planes per channel, padding included. Recorded jobs have
// larger ones for even filters.
Image reshuffled_image(const ConvShape& shape);
Image recorded_reshuffled_image(const ConvShape& shape);

// Rows (before, after) of a PAD op's x, y, z for an image, from its constant; rank-adjusted.
struct PadAmounts {
  int32_t before_h = 0, after_h = 0, before_w = 0, after_w = 0, before_c = 0, after_c = 0, batch = 0;
  int32_t largest() const;
};
PadAmounts pad_amounts(const ir::Graph& graph, ir::OpId op);

}  // namespace skillet::npus::vivante
