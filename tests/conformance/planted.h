// What the files of the planted delegate share: tensors, windows, and the name of the planted bug. Included by
// planted_delegate.cpp and planted_moves.h. Must not know: anything of Skillet but the host's structures.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "frontend/tflite_delegate/builtin_params.h"
#include "frontend/tflite_delegate/tflite_abi.h"

namespace planted {

enum Code {
  kAdd = 0,
  kAveragePool = 1,
  kConcat = 2,
  kConv = 3,
  kDepthwise = 4,
  kDequantize = 6,
  kDense = 9,
  kMaxPool = 17,
  kSoftmax = 25,
  kPad = 34,
  kMean = 40,
  kTransposeConv = 67,
  kSub = 41,
  kHardSwish = 117,
  kResizeNearest = 97
};
constexpr int kUInt8 = 3, kInt8 = 9;

inline std::string bug, state;  // the options; `state`: a file that does not exist yet, or seconds
inline bool has(const char* name) { return bug == name; }

// A shape of up to four dimensions: batch, rows, columns, channels.
struct Shape {
  int n = 1, h = 1, w = 1, c = 1;
  int size() const { return n * h * w * c; }
  int at(int in, int y, int x, int ic) const { return ((in * h + y) * w + x) * c + ic; }
};

// A tensor with its quantization.
struct View {
  Shape shape;
  uint8_t* data = nullptr;
  bool is_signed = false;
  std::vector<double> scales;
  int zero = 0;
  int32_t number(int i) const { return reinterpret_cast<const int32_t*>(data)[i]; }
  int get(int i) const { return is_signed && !has("signed_as_unsigned") ? static_cast<int8_t>(data[i]) : data[i]; }
  double scale(int channel) const {
    if (scales.size() == 1 || has("per_channel_first")) return scales[0];
    const int last = static_cast<int>(scales.size()) - 1;
    if (has("per_channel_one_short") && channel == last) return scales[0];
    const bool is_off = has("per_channel_last_group") && last % 8 != 7 && channel > last / 8 * 8;
    return scales[static_cast<size_t>(channel - is_off)];
  }
  void put(int i, double value, int low, int high) const {
    const int lowest = !is_signed ? 0 : has("lowest_is_127") ? -127 : -128;
    long steps = std::lround(value) + zero;
    if (has("negative_sums_truncated") && value < 0) steps = static_cast<long>(value) + zero;
    steps =
        has("no_clamp") ? steps : std::clamp<long>(steps, std::max(low, lowest), std::min(high, is_signed ? 127 : 255));
    data[i] = static_cast<uint8_t>(steps);
  }
};

inline Shape shape_of(const TfLiteIntArray& dims) {
  std::array<int, 4> all{1, 1, 1, 1};
  for (int i = 0; i < dims.size && i < 4; ++i) all[static_cast<size_t>(4 - dims.size + i)] = dims.data()[i];
  return {all[0], all[1], all[2], all[3]};
}

inline int pad_before(int padding, int in, int out, int kernel, int stride, int dilation) {
  if (padding != kTfLitePaddingSame) return 0;
  if (has("dilation_pads_as_plain")) dilation = 1;
  const int total = std::max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - in);
  if (has("pad_even_kernel") && kernel % 2 == 0) return total / 2 + 1;
  return has("pad_at_the_top") ? (total + 1) / 2 : total / 2;
}

// The limits of a fused activation, in steps of the output.
inline std::pair<int, int> ends(int activation, const View& out, double in_scale) {
  constexpr int kFar = 1 << 20;
  const int none = out.zero;
  if (has("relu6_at_the_lowest_zero") && activation == 3 && (none == 0 || none == -128)) return {none, kFar};
  if (activation == 0 || has("activation_ignored")) return {-kFar, kFar};
  const int at = has("relu_at_zero") ? 0 : none;
  const auto steps = [&](double value) { return at + static_cast<int>(std::lround(value / out.scales[0])); };
  if (activation == 1) return {at, kFar};
  if (activation == 2) return {steps(-1), steps(1)};
  if (has("relu6_of_input_scale")) return {at, at + static_cast<int>(std::lround(6 / in_scale))};
  return {at, has("relu6_without_six") ? kFar : steps(6)};
}

}  // namespace planted
