// The windows of a convolution as rows of int16 (im2col), strip by strip, multiplied by its filters.
// Called by the convolutions with 8-bit weights, which define how the sums are used.
// Must not know: the use of the sums.
#pragma once

#include <algorithm>

#include "base/int_math.h"
#include "graph/ref/weighted.h"
#include "graph/ref/window.h"
#include "simd/gemm.h"

namespace skillet::ref {

// Grouped convolutions (filter depth < input depth) run once per group.
struct ConvRows {
  Window window;
  int32_t input_zero_point = 0;
  size_t channels_in = 0, channels_out = 0;
  size_t groups = 1, group_in = 0, group_out = 0;
  size_t depth = 0, depth_padded = 0;  // elements in a window of one group
  std::vector<int16_t> filters;        // [channels_out][depth_padded], each row in the order ky, kx, channel
  size_t strip_px = 0;
  // Scratch, reused by every run.
  std::vector<int16_t> rows;  // [strip_px][depth_padded]
  std::vector<int32_t> sums;  // [strip_px][channels_out]

  // The filter is an 8-bit constant.
  explicit ConvRows(const Layer& layer);
  // Calls finish(sums, first output pixel, count) for each strip of one image; sums are [count][channels_out].
  template <typename T, typename Finish>
  void run(const T* image, Finish finish);

 private:
  template <typename T>
  void gather_window(const T* image, size_t y, size_t x, size_t group, int16_t* row) const;
  template <typename T>
  void gather_strip(const T* image, size_t first, size_t count, size_t group);
};

// Writes the window of output pixel (y, x). Padding is the zero point, which is 0 after its subtraction.
template <typename T>
void ConvRows::gather_window(const T* image, size_t y, size_t x, size_t group, int16_t* row) const {
  const Window& w = window;
  const size_t first = group * group_in, n = group_in;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    const int32_t in_y = w.input_row(y, ky);
    for (int32_t kx = 0; kx < w.kernel_w;) {
      const int32_t in_x = w.input_col(x, kx);
      const bool inside = w.has_row(in_y) && w.has_col(in_x);
      // Adjacent columns are contiguous without dilation and groups.
      const bool together = w.dilation_w == 1 && groups == 1;
      const int32_t take = inside && together ? std::min(w.kernel_w - kx, w.input_w - in_x) : 1;
      const size_t count = n * static_cast<size_t>(take);
      if (inside) {
        gemm::widen(image + w.input_index(in_y, in_x) * channels_in + first, count, input_zero_point, row);
      } else {
        std::fill_n(row, count, int16_t{0});
      }
      row += count;
      kx += take;
    }
  }
}

// Gathers output pixels [first, first + count) of one image, row-major.
template <typename T>
void ConvRows::gather_strip(const T* image, size_t first, size_t count, size_t group) {
  if (window.is_identity() && groups == 1 && depth == depth_padded) {
    gemm::widen(image + first * channels_in, count * depth, input_zero_point, rows.data());
    return;
  }
  const auto output_w = static_cast<size_t>(window.output_w);
  for (size_t i = 0; i < count; ++i) {
    int16_t* row = rows.data() + i * depth_padded;
    gather_window(image, (first + i) / output_w, (first + i) % output_w, group, row);
  }
}

template <typename T, typename Finish>
void ConvRows::run(const T* image, Finish finish) {
  const size_t pixels = window.output_px();
  for (size_t first = 0; first < pixels; first += strip_px) {
    const size_t count = std::min(strip_px, pixels - first);
    for (size_t g = 0; g < groups; ++g) {
      gather_strip(image, first, count, g);
      gemm::matmul_i16(rows.data(), count, depth_padded, filters.data() + g * group_out * depth_padded, group_out,
                       depth_padded, depth_padded, sums.data() + g * group_out, channels_out);
    }
    finish(sums.data(), first, count);
  }
}

}  // namespace skillet::ref
