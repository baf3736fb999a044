// Operations of the planted delegate that use windows, each with its bugs. Included by planted_delegate.cpp.
// Must not know: anything of Skillet but the host's structures.
#pragma once

#include "planted.h"

namespace planted {

struct Window {
  int padding = kTfLitePaddingSame, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, kernel_h = 1,
      kernel_w = 1;
  int activation = 0, multiplier = 0;
};

inline double multiplier_of(double value) {
  if (!has("multiplier_of_few_bits")) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::floor(fraction * 16) / 16, exponent);
}

struct Sum {
  const View &in, &weights;
  const int32_t* bias;
  const Window& window;
  bool is_depthwise;
  int pad_h, pad_w;
  bool is_pad_odd;  // one more pad at the end

  int input_steps(int n, int y, int x, int c) const {
    const bool is_outside = y < 0 || x < 0 || y >= in.shape.h || x >= in.shape.w;
    if (has("images_run_together") && y < 0 && n > 0 && x >= 0 && x < in.shape.w)
      return in.get(in.shape.at(n - 1, y + in.shape.h, x, c)) - in.zero;
    const int zero = has("input_zero_ignored") ? 0 : in.zero;
    const bool is_odd = has("pads_odd_with_zero") && is_pad_odd;
    if (is_outside) return is_odd || has("pads_with_zero") ? 0 - zero : in.zero - zero;
    return in.get(in.shape.at(n, y, x, c)) - zero;
  }

  int weight_steps(int at) const {
    const int steps = weights.get(at) - (has("weight_zero_ignored") ? 0 : weights.zero);
    return has("weights_of_8_bits") ? std::clamp(steps, -128, 127) : steps;
  }

  // Returns whether a driver with this bug skips a row of the filter.
  bool is_skipped(int y, int row) const {
    if (has("band_seam")) return (y < 8) != (row < 8);
    return has("lines_beyond_a_tile_of_16") && y % 16 == 15 && row > y;
  }

  double of(int n, int y, int x, int channel) const {
    const int depth = is_depthwise ? 1 : in.shape.c;
    const int used = has("input_tail_dropped") && depth > 16 ? depth / 16 * 16 : depth;
    int64_t sum = bias != nullptr && !has("bias_ignored") ? bias[has("bias_of_first_channel") ? 0 : channel] : 0;
    if (has("needs_a_bias") && bias == nullptr) sum = weights.data[0] * 64;
    if (has("bias_of_16_bits")) sum = static_cast<int16_t>(sum);
    const bool is_plain = has("dilation_ignored") || (has("dilation_ignored_for_5x5") && window.kernel_h == 5);
    const int dilation_h = is_plain                   ? 1
                           : has("dilation_of_width") ? window.dilation_w
                                                      : window.dilation_h,
              dilation_w = is_plain ? 1 : window.dilation_w;
    for (int ky = 0; ky < window.kernel_h; ++ky) {
      for (int kx = 0; kx < window.kernel_w; ++kx) {
        const int row = y * window.stride_h - pad_h + ky * dilation_h,
                  column = x * window.stride_w - pad_w + kx * dilation_w;
        if (is_skipped(y, row)) continue;
        for (int c = 0; c < used; ++c) {
          const int from = !is_depthwise                 ? c
                           : has("multiplier_as_blocks") ? channel % in.shape.c
                                                         : channel / std::max(1, window.multiplier);
          if (has("half_words_of_channels") && depth % 2 == 1 && c == depth - 1 && depth > 1) continue;
          const Shape& ws = weights.shape;
          const int at = is_depthwise ? ws.at(0, ky, kx, channel) : ws.at(channel, ky, kx, c);
          sum += input_steps(n, row, column, from) * weight_steps(at);
        }
      }
    }
    if (has("sums_of_20_bits")) sum = std::clamp<int64_t>(sum, -(1 << 19), (1 << 19) - 1);
    if (has("sums_of_16_bits")) sum = std::clamp<int64_t>(sum, -32768, 32767);
    return static_cast<double>(sum);
  }
};

inline bool is_left_out(const Shape& out, int y, int c) {
  if (has("channel_tail") && c >= out.c / 8 * 8 && out.c > 8) return true;
  if (has("tail_of_one_channel") && c % 16 == 0 && c + 1 == out.c && c > 0) return true;
  return has("rows_beyond_31") && y > 31;
}

inline void sums(const View& in, const View& weights, const int32_t* bias, const View& out, const Window& window,
                 bool is_depthwise) {
  const auto [low, high] = ends(window.activation, out, in.scales[0]);
  const Sum sum{
      in,
      weights,
      bias,
      window,
      is_depthwise,
      pad_before(window.padding, in.shape.h, out.shape.h, window.kernel_h, window.stride_h, window.dilation_h),
      pad_before(window.padding, in.shape.w, out.shape.w, window.kernel_w, window.stride_w, window.dilation_w) -
          (has("pad_of_odd_width_at_stride_2") && window.stride_w == 2 && in.shape.w % 2 == 1 && window.kernel_w > 1),
      (std::max(0, (out.shape.h - 1) * window.stride_h + (window.kernel_h - 1) * window.dilation_h + 1 - in.shape.h)) %
              2 ==
          1};
  for (int n = 0; n < out.shape.n; ++n) {
    for (int y = 0; y < out.shape.h; ++y) {
      for (int x = 0; x < out.shape.w; ++x) {
        for (int c = 0; c < out.shape.c; ++c) {
          if (is_left_out(out.shape, y, c)) continue;
          const bool is_late = (has("stride_2_odd") || (has("stride_2_odd_depthwise") && is_depthwise)) &&
                               window.stride_h == 2 && in.shape.h % 2 == 1 && y + 1 == out.shape.h;
          const int from_n = has("second_image") || (has("dense_first_row") && in.shape.h * in.shape.w == 1) ? 0 : n;
          const int from_x = has("columns_of_four") && out.shape.w % 4 != 0 && x + 1 == out.shape.w ? 0 : x;
          const int from_y = is_late ? 0 : has("stale_last_tile") && out.shape.h % 8 != 0 && y >= 8 ? y % 8 : y;
          const int scale_of = has("multiplier_shares_scales") && is_depthwise ? c / std::max(1, window.multiplier) : c;
          const double real = multiplier_of(in.scales[0] * weights.scale(scale_of) / out.scales[0]);
          if (has("multiplier_above_one") && real >= 1) continue;
          out.put(out.shape.at(n, y, x, c), sum.of(from_n, from_y, from_x, c) * real, low, high);
        }
      }
    }
  }
}

inline void pools(const View& in, const View& out, const Window& window, bool is_max) {
  const auto [low, high] = ends(window.activation, out, in.scales[0]);
  const int pad_h = pad_before(window.padding, in.shape.h, out.shape.h, window.kernel_h, window.stride_h, 1);
  const int pad_w = pad_before(window.padding, in.shape.w, out.shape.w, window.kernel_w, window.stride_w, 1);
  if (has("pools_of_8_fail") && window.kernel_h == 8) return;
  for (int i = 0; i < out.shape.size(); ++i) {
    const int c = i % out.shape.c, x = i / out.shape.c % out.shape.w, y = i / out.shape.c / out.shape.w % out.shape.h,
              n = i / (out.shape.size() / out.shape.n);
    int sum = 0, count = 0, most = has("max_pool_pads_with_zero_point") ? in.zero : -1000;
    for (int ky = 0; ky < window.kernel_h; ++ky) {
      for (int kx = 0; kx < window.kernel_w; ++kx) {
        const int row = y * window.stride_h - pad_h + ky, column = x * window.stride_w - pad_w + kx;
        if (row < 0 || column < 0 || row >= in.shape.h || column >= in.shape.w) continue;
        int value = in.get(in.shape.at(has("second_image_of_pool") ? 0 : n, row, column, c));
        if (has("max_pool_as_signed") && is_max) value = static_cast<int8_t>(value);
        sum += value, ++count, most = std::max(most, value);
      }
    }
    const int missing = window.kernel_h * window.kernel_w - count;
    if (has("average_pool_pads_with_number_zero") && !is_max) count += missing;
    if (has("pool_counts_padding"))
      sum += (window.kernel_h * window.kernel_w - count) * in.zero, count = window.kernel_h * window.kernel_w;
    out.put(i, (is_max ? most : static_cast<double>(sum) / std::max(1, count)) - out.zero, low, high);
  }
}

}  // namespace planted
