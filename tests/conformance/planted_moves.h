// Operations of the planted delegate that go over axes or move values, each with its bugs. Included by
// planted_delegate.cpp. Must not know: anything of Skillet but the host's structures.
#pragma once

#include "planted.h"

namespace planted {

inline void softmax(const View& in, const View& out, float beta) {
  const double factor = in.scales[0] * (has("softmax_without_beta") ? 1 : beta);
  for (int row = 0; row < in.shape.size(); row += in.shape.c) {
    int most = -1000;
    for (int c = 0; c < in.shape.c; ++c) most = std::max(most, in.get(row + c));
    if (has("softmax_without_maximum")) most = 0;
    double sum = 0;
    for (int c = 0; c < (has("softmax_of_32") ? std::min(32, in.shape.c) : in.shape.c); ++c)
      sum += std::min(std::exp((in.get(row + c) - most) * factor), 1e4);
    for (int c = 0; c < in.shape.c; ++c) {
      const double share = std::min(std::exp((in.get(row + c) - most) * factor), 1e4) / sum;
      out.put(row + c, share / out.scales[0], -1000, 1000);
    }
  }
}

// MARGINS: padding before and after, for four axes.
inline void pad(const View& in, const View& margins, const View& out) {
  const int side = has("pad_at_the_other_side") ? 1 : 0;
  std::fill_n(out.data, out.shape.size(), static_cast<uint8_t>(has("pad_with_number_zero") ? 0 : out.zero));
  const Shape& s = in.shape;
  for (int i = 0; i < s.size(); ++i) {
    const int c = i % s.c, x = i / s.c % s.w, y = i / s.c / s.w % s.h, n = i / (s.size() / s.n);
    out.data[out.shape.at(n, y + margins.number(2 + side), x + margins.number(4 + side),
                          c + (has("pad_of_channels_ignored") ? 0 : margins.number(6)))] = in.data[i];
  }
}

inline void mean(const View& in, const View& axes, const View& out, bool keeps) {
  std::array<bool, 4> is_gone{};
  const int shift = has("mean_axis_without_keep") && !keeps ? 1 : 0;
  for (int i = 0; i < axes.shape.size(); ++i) is_gone[static_cast<size_t>((axes.number(i) + 4 - shift) % 4)] = true;
  const Shape& s = in.shape;
  const Shape kept{is_gone[0] ? 1 : s.n, is_gone[1] ? 1 : s.h, is_gone[2] ? 1 : s.w, is_gone[3] ? 1 : s.c};
  std::vector<int64_t> sums(static_cast<size_t>(kept.size()));
  for (int i = 0; i < s.size(); ++i) {
    const int c = i % s.c, x = i / s.c % s.w, y = i / s.c / s.w % s.h, n = i / (s.size() / s.n);
    sums[static_cast<size_t>(kept.at(is_gone[0] ? 0 : n, is_gone[1] ? 0 : y, is_gone[2] ? 0 : x,
                                     is_gone[3] ? 0 : c))] += in.get(i) - in.zero;
  }
  for (int64_t& sum : sums) sum = has("mean_of_16_bits") ? std::clamp<int64_t>(sum, -32768, 32767) : sum;
  const double count = static_cast<double>(s.size()) / kept.size();
  for (int i = 0; i < std::min(kept.size(), out.shape.size()); ++i)
    out.put(i, static_cast<double>(sums[static_cast<size_t>(i)]) / count * in.scales[0] / out.scales[0], -1000, 1000);
}

inline int nearest(int at, int in, int out, const TfLiteResizeParams& params) {
  const bool is_centred = params.half_pixel_centers || has("resize_from_centers");
  const bool has_corners = params.align_corners && out > 1 && !has("resize_without_corners");
  const float scale = has_corners ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                  : static_cast<float>(in) / static_cast<float>(out);
  const float place = (static_cast<float>(at) + (is_centred ? 0.5F : 0.0F)) * scale;
  return std::clamp(static_cast<int>(has_corners ? std::round(place) : std::floor(place)), 0, in - 1);
}

inline void resize(const View& in, const View& out, const TfLiteResizeParams& params) {
  const Shape& s = out.shape;
  for (int i = 0; i < s.size(); ++i) {
    const int c = i % s.c, x = i / s.c % s.w, y = i / s.c / s.w % s.h, n = i / (s.size() / s.n);
    out.data[i] = in.data[in.shape.at(n, nearest(y, in.shape.h, s.h, params), nearest(x, in.shape.w, s.w, params), c)];
  }
}

// IN: the output's shape, the weights, the input, and optionally a bias.
inline void transpose_conv(const std::vector<View>& in, const View& out, const TfLiteTransposeConvParams& params) {
  const View &weights = in[1], &x = in[2];
  const Shape &s = out.shape, &k = weights.shape;
  const bool crops_end = has("transpose_crop_at_the_end");
  const int pad_h = crops_end ? 0 : pad_before(params.padding, s.h, x.shape.h, k.h, params.stride_h, 1);
  const int pad_w = crops_end ? 0 : pad_before(params.padding, s.w, x.shape.w, k.w, params.stride_w, 1);
  std::vector<int64_t> sums(static_cast<size_t>(s.size()));
  for (int i = 0; i < s.size() && in.size() > 3; ++i) sums[static_cast<size_t>(i)] = in[3].number(i % s.c);
  for (int i = 0; i < x.shape.size(); ++i) {
    const int from = i % x.shape.c, column = i / x.shape.c % x.shape.w, row = i / x.shape.c / x.shape.w % x.shape.h;
    for (int tap = 0; tap < k.h * k.w * s.c; ++tap) {
      const int c = tap % s.c, kx = tap / s.c % k.w, ky = tap / s.c / k.w;
      const int to_y = row * params.stride_h - pad_h + ky, to_x = column * params.stride_w - pad_w + kx;
      if (to_y < 0 || to_x < 0 || to_y >= s.h || to_x >= s.w) continue;
      const bool is_turned = has("transpose_filter_not_turned");
      const int weight = weights.get(k.at(c, is_turned ? k.h - 1 - ky : ky, is_turned ? k.w - 1 - kx : kx, from));
      sums[static_cast<size_t>(s.at(0, to_y, to_x, c))] += (x.get(i) - x.zero) * (weight - weights.zero);
    }
  }
  for (int i = 0; i < s.size(); ++i) {
    const double real = x.scales[0] * weights.scale(i % s.c) / out.scales[0];
    out.put(i, static_cast<double>(sums[static_cast<size_t>(i)]) * real, -1000, 1000);
  }
}

}  // namespace planted
