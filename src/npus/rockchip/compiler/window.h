// Geometry and values of graph operations, shared by support and lowering.
// Called by support.cpp, conv.cpp, lower.cpp.
// Must not know: tasks, registers.
#pragma once

#include "npus/rockchip/compiler/operations.h"

namespace skillet::npus::rockchip {

constexpr int32_t kKernelMax = 31;  // rows and columns
constexpr int32_t kKernelSeen = 7;  // larger filters are in no known program

// The sliding window of a convolution, pooling or fully connected layer.
struct Window {
  Plane in, out;
  int32_t kernel_height = 1, kernel_width = 1;
  int32_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  bool depthwise = false;
  int32_t multiplier = 1;  // depthwise: output channels per input channel
};
// CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, AVERAGE_POOL_2D, MAX_POOL_2D, MEAN and the like over rows and columns. A
// fully connected layer that flattens an image has a filter of the image's size.
Window window_of(const ir::Graph& graph, ir::OpId op);

Plane plane_of(const ir::Shape& shape);
// Operations that treat all bytes alike take a tensor as two halves of one row of atoms, each half a surface of 16
// channels, so that no extra channel, row or surface is computed. The halves may overlap in the middle, by less than a
// row.
struct Flat {
  Plane plane;        // of 32 channels
  int64_t pitch = 0;  // pixels from one half to the other
};
Flat flat(const Plane& plane);
// The same for a row of `atoms` atoms, without overlap (RK3576); an odd number is rounded up.
Flat halves(int64_t atoms);
// Number of images in a shape; the chip takes 1.
int64_t images_of(const ir::Shape& shape);

// Whether channels have different scales or zero points.
bool is_per_channel(const ir::Quant& quant);
// Zero point of the tensor as unsigned bytes.
int32_t unsigned_zero(const ir::Tensor& tensor);

ir::Activation activation_of(const ir::Op& op);
// RELU and RELU6: the limits that saturation of the output type does not already do.
struct Limits {
  bool lower = false;
  std::optional<double> upper;  // real value
};
Limits limits_of(const ir::Tensor& output, ir::Activation activation);

// PAD: rows and columns before and after; nothing if it pads channels or images, or the amounts are not known.
struct PadAmounts {
  int32_t top = 0, bottom = 0, left = 0, right = 0;
  bool none() const { return top + bottom + left + right == 0; }
};
// The window over the image without its padding: the window pads instead.
Window with_pads(Window w, const PadAmounts& pads);
std::optional<PadAmounts> pad_amounts(const ir::Graph& graph, const ir::Op& op);

}  // namespace skillet::npus::rockchip
