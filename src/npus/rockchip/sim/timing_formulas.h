// Cycles of the convolution pipeline: what the vendor's own estimator prints, recovered from its logs (exact for every
// row that shows it). Called by timing.cpp (tasks), timing_layers.cpp (layers) and the tests.
// Must not know: registers, bytes, time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/int_math.h"

namespace skillet::sim::rockchip {

// What is done at once. Of 16-bit data half as many kernels, which leave in half as many cycles.
struct Lanes {
  int64_t channels = 32, kernels = 32, depthwise = 64, output_cycles = 4;
  int64_t image_columns = 1;  // neighbouring taps of packed pixels that are taken together

  Lanes halved() const { return {channels, kernels / 2, depthwise, output_cycles / 2, image_columns}; }
};

struct Window {
  int64_t pixels = 0, channels = 0, kernels = 0, rows = 1, columns = 1;
  bool depthwise = false, packed = false;  // packed: image pixels of up to four channels
};

constexpr int64_t kPixelsAtOnce = 16;

// Depthwise: rows of `channels`. The output stage takes `output_cycles` for each group of kernels, however short the
// sum.
constexpr int64_t conv_cycles(const Lanes& lanes, const Window& w) {
  const int64_t pixels = align_up(w.pixels, kPixelsAtOnce), taps = w.rows * w.columns;
  if (w.depthwise) return pixels * ceil_div(w.channels, lanes.depthwise) * taps;
  const int64_t each =
      w.packed ? w.rows * ceil_div(w.columns, lanes.image_columns) : taps * ceil_div(w.channels, lanes.channels);
  return pixels * ceil_div(w.kernels, lanes.kernels) * std::max(each, lanes.output_cycles);
}

// How a convolution's features go through the CBUF, in slices of rows.
struct Slices {
  int64_t rows = 0;          // of all slices, those that two of them read twice
  int64_t weight_reads = 1;  // of all weights
};
constexpr int64_t kBankBytes = 32 << 10, kUnitsOfBank = 512, kUnitBytes = 64;

// Weights stay where they leave room (and a bank more than they fill); else they are streamed through five banks of
// twelve, for each slice anew.
constexpr Slices slices_of(int64_t banks, int64_t row_bytes, int64_t weight_bytes, int64_t in_rows, int64_t out_rows,
                           int64_t window_rows, int64_t stride) {
  const int64_t weights = ceil_div(weight_bytes, kBankBytes) + 1;
  const bool stay = weights + 1 < banks;
  const int64_t features = stay ? banks - weights : banks * 7 / 12;
  const int64_t fit = features * kUnitsOfBank / std::max<int64_t>(ceil_div(row_bytes, kUnitBytes), 1);
  if (fit >= in_rows) return {in_rows, 1};
  const int64_t each = std::max<int64_t>((fit - window_rows) / stride + 1, 1);
  const int64_t count = ceil_div(out_rows, each);
  return {in_rows + (count - 1) * std::max<int64_t>(window_rows - stride, 0), stay ? 1 : count};
}

}  // namespace skillet::sim::rockchip
