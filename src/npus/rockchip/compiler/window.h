// Geometry and values of graph operations, as support and lowering both see them.
// Called by support.cpp, conv.cpp, lower.cpp.
// Must not know: tasks, registers.
#pragma once

#include "npus/rockchip/compiler/operations.h"

namespace skillet::npus::rockchip {

constexpr int32_t kKernelMax = 31;  // rows and columns
constexpr int32_t kKernelSeen = 7;  // larger filters are in no known program

// What a convolution, pooling or fully connected layer slides over what.
struct Window {
  Plane in, out;
  int32_t kernel_height = 1, kernel_width = 1;
  int32_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  bool depthwise = false;
  int32_t multiplier = 1;  // depthwise: output channels per input channel
};
// CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, AVERAGE_POOL_2D, MAX_POOL_2D, MEAN and the like over rows and columns. A
// fully connected layer on an image that it flattens has a filter as large as that.
Window window_of(const ir::Graph& graph, ir::OpId op);

Plane plane_of(const ir::Shape& shape);
// What treats all bytes alike sees a tensor as two halves of one row of atoms, each half a surface of 16 channels: no
// channel, row or surface is computed that is not there. In the middle the halves may overlap, by less than a row.
struct Flat {
  Plane plane;        // of 32 channels
  int64_t pitch = 0;  // pixels from one half to the other
};
Flat flat(const Plane& plane);
// The same of so many atoms in a row, without overlap: RK3576. Of an odd number there is one more.
Flat halves(int64_t atoms);
// Images that a shape holds; 1: what the chip takes.
int64_t images_of(const ir::Shape& shape);

// Scale of a tensor where it is one for all channels.
bool is_per_channel(const ir::Quant& quant);
// Zero point of the tensor as unsigned bytes.
int32_t unsigned_zero(const ir::Tensor& tensor);

ir::Activation activation_of(const ir::Op& op);
// Of RELU and RELU6: whether the output type does it by saturation; else which of the two limits are left to do.
struct Limits {
  bool lower = false;
  std::optional<double> upper;  // real value
};
Limits limits_of(const ir::Tensor& output, ir::Activation activation);

// PAD: rows and columns before and after; nothing where it pads channels or images, or is not known.
struct PadAmounts {
  int32_t top = 0, bottom = 0, left = 0, right = 0;
  bool none() const { return top + bottom + left + right == 0; }
};
// The window over the image that was padded by so much: the padding is its own.
Window with_pads(Window w, const PadAmounts& pads);
std::optional<PadAmounts> pad_amounts(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::npus::rockchip
