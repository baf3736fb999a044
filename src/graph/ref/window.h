// Window: how a kernel slides over an image: sizes, strides, dilation, padding, and the positions of its taps.
// Called by convolutions and pooling.
// Must not know: element types, channels.
#pragma once

#include "graph/ref/kernel.h"

namespace skillet::ref {

struct Window {
  int32_t input_h = 0, input_w = 0, output_h = 0, output_w = 0;
  int32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int32_t pad_top = 0, pad_left = 0;

  size_t input_px() const { return static_cast<size_t>(input_h) * static_cast<size_t>(input_w); }
  size_t output_px() const { return static_cast<size_t>(output_h) * static_cast<size_t>(output_w); }
  // Input row under tap `ky` of output row `y`; may be outside.
  int32_t input_row(size_t y, int32_t ky) const {
    return static_cast<int32_t>(y) * stride_h - pad_top + ky * dilation_h;
  }
  int32_t input_col(size_t x, int32_t kx) const {
    return static_cast<int32_t>(x) * stride_w - pad_left + kx * dilation_w;
  }
  bool has_row(int32_t y) const { return y >= 0 && y < input_h; }
  bool has_col(int32_t x) const { return x >= 0 && x < input_w; }
  size_t input_index(int32_t y, int32_t x) const {
    return static_cast<size_t>(y) * static_cast<size_t>(input_w) + static_cast<size_t>(x);
  }
  // True if output pixel i reads exactly input pixel i.
  bool is_identity() const {
    return kernel_h == 1 && kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_top == 0 && pad_left == 0;
  }
};

// `filter` is [_, h, w, _] (OHWI or 1HWC). Error if the dilated kernel is so large that coordinates exceed int32.
inline Result<Window> conv_window(const Context& context, const ir::ConvAttrs& attrs, const ir::Shape& input,
                                  const ir::Shape& filter, const ir::Shape& output) {
  constexpr int64_t kMaxExtent = 1 << 29;
  if (int64_t{filter[1]} * attrs.dilation_h > kMaxExtent || int64_t{filter[2]} * attrs.dilation_w > kMaxExtent) {
    return context.unsupported("kernel {}x{} with dilation {}x{} is too large", filter[1], filter[2], attrs.dilation_h,
                               attrs.dilation_w);
  }
  return Window{
      .input_h = input[1],
      .input_w = input[2],
      .output_h = output[1],
      .output_w = output[2],
      .kernel_h = filter[1],
      .kernel_w = filter[2],
      .stride_h = attrs.stride_h,
      .stride_w = attrs.stride_w,
      .dilation_h = attrs.dilation_h,
      .dilation_w = attrs.dilation_w,
      .pad_top = attrs.rows
                     ? attrs.rows->top
                     : padding_before(attrs.padding, input[1], output[1], filter[1], attrs.stride_h, attrs.dilation_h),
      .pad_left = padding_before(attrs.padding, input[2], output[2], filter[2], attrs.stride_w, attrs.dilation_w)};
}

}  // namespace skillet::ref
