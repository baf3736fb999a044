// The only cost model of the family: the work of a task, and the time that the units of a chip take for it. Cycles are
// those that the vendor's own estimator prints, recovered from its logs (exact for every row that shows them).
// Called by npus/rockchip/compiler/cost.cpp (operations), npus/rockchip/sim/timing*.cpp (tasks, layers) and the tests.
// Must not know: registers, graphs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/int_math.h"

namespace skillet::rockchip::timing {

// Work done at once. For 16-bit data half as many kernels, which leave in half as many cycles.
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

// Depthwise: rows of `channels`. The output stage takes `output_cycles` for each group of kernels, also for short sums.
constexpr int64_t conv_cycles(const Lanes& lanes, const Window& w) {
  const int64_t pixels = align_up(w.pixels, kPixelsAtOnce), taps = w.rows * w.columns;
  if (w.depthwise) return pixels * ceil_div(w.channels, lanes.depthwise) * taps;
  const int64_t each =
      w.packed ? w.rows * ceil_div(w.columns, lanes.image_columns) : taps * ceil_div(w.channels, lanes.channels);
  return pixels * ceil_div(w.kernels, lanes.kernels) * std::max(each, lanes.output_cycles);
}

// How a convolution's features go through the CBUF, in slices of rows.
struct Slices {
  int64_t rows = 0;          // rows that two slices read, over all slices
  int64_t weight_reads = 1;  // reads of all weights
};
constexpr int64_t kBankBytes = 32 << 10, kUnitsOfBank = 512, kUnitBytes = 64;

// Weights stay if they leave room (and a bank more than they fill); otherwise they are streamed through five banks of
// twelve, again for each slice.
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

// The speeds of a chip: the rows of timing_params.def, by name.
struct Rates {
  double clock_ghz = 1, mac_stretch = 1, dram_gbps = 1, bus_bytes = 0, load_share = 0, overlap = 1, least_us = 0;
  double table_rate = 1, pool_rate = 1, transpose_gbps = 1;
  Lanes lanes;

  // Limited by the memory, and by the chip's port in its clock (0: no known limit).
  constexpr double bytes_per_us() const {
    return 1e3 * (bus_bytes > 0 ? std::min(dram_gbps, bus_bytes * clock_ghz) : dram_gbps);
  }
};
template <typename Get>
Rates rates_by(const Get& get) {
  const auto whole = [&](std::string_view name) { return static_cast<int64_t>(get(name)); };
  return {.clock_ghz = get("clock_ghz"),
          .mac_stretch = get("mac_stretch"),
          .dram_gbps = get("dram_gbps"),
          .bus_bytes = get("bus_bytes"),
          .load_share = get("load_share"),
          .overlap = get("overlap"),
          .least_us = get("least_us"),
          .table_rate = get("table_rate"),
          .pool_rate = get("pool_rate"),
          .transpose_gbps = get("transpose_gbps"),
          .lanes = {whole("mac_channels"), whole("mac_kernels"), whole("depthwise_lanes"), whole("output_cycles"),
                    whole("image_columns")}};
}

// Work of one task or layer, before its conversion to time.
struct Work {
  double conv_cycles = 0;     // by conv_cycles()
  double table_elements = 0;  // through the look-up table, by table_elements()
  double pooled_bytes = 0, transposed_bytes = 0;
  double read_bytes = 0, written_bytes = 0;
  double second_bytes = 0;  // part of read_bytes: second operands of elements, through a separate port
  double loaded_bytes = 0;  // part of read_bytes: features of convolutions, which wait for room in the CBUF
};

// The output stage works on groups of 32 kernels; the last group takes as long as a full one.
constexpr int64_t table_elements(int64_t pixels, int64_t kernels) {
  constexpr int64_t kGroup = 32;
  return pixels * align_up(kernels, kGroup);
}

// By unit, in microseconds. Units work at the same time, limited by `overlap`.
enum Unit : uint8_t { kMac, kDram, kTable, kPool, kTranspose, kUnits };
constexpr std::array<std::string_view, kUnits> kUnitNames = {"MAC", "DRAM", "table", "pool", "transpose"};
constexpr std::array<double, kUnits> units_us(const Rates& rates, const Work& work) {
  const double cycles_per_us = rates.clock_ghz * 1e3, bytes_per_us = rates.bytes_per_us();
  // The CBUF holds the features of one slice; the next slice is fetched when the MACs have finished it.
  const double load_us = rates.load_share * work.loaded_bytes / bytes_per_us;
  return {work.conv_cycles * rates.mac_stretch / cycles_per_us + load_us,
          std::max(work.read_bytes - work.second_bytes + work.written_bytes, work.second_bytes) / bytes_per_us,
          work.table_elements / rates.table_rate / cycles_per_us, work.pooled_bytes / rates.pool_rate / cycles_per_us,
          work.transposed_bytes / (rates.transpose_gbps * 1e3)};
}
constexpr double task_us(const Rates& rates, const Work& work) {
  const auto units = units_us(rates, work);
  double sum = 0, longest = 0;
  for (const double us : units) sum += us, longest = std::max(longest, us);
  return std::max(rates.least_us, longest + (1 - std::min(rates.overlap, 1.0)) * (sum - longest));
}

// A row of timing_params.def for a chip and jobs ("open", "vendor"), without a state of the board; 0 if there is no
// such row.
double parameter(std::string_view chip, std::string_view jobs, std::string_view name);

}  // namespace skillet::rockchip::timing
