// ConvJob: the CNA and CORE registers of a task as plain geometry, after all checks; its operands; and the two ways to
// compute its sums. Called by conv.cpp, core.cpp and the tests.
// Must not know: commands, the DPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/hw/rockchip.h"
#include "npus/rockchip/sim/arithmetic.h"
#include "npus/rockchip/sim/dma.h"
#include "npus/rockchip/sim/options.h"

namespace skillet::sim::rockchip {

namespace hw = ::skillet::rockchip::hw;

// One of four lanes of the input converter.
struct ConverterLane {
  int32_t scale = 0, offset = 0;
  unsigned shift = 0;
};
// Packed pixels on their way to the MAC array.
struct Converter {
  bool bypass = true, add_first = false, is_signed = true;
  Tie tie = Tie::even;
  ConverterLane lanes[4];
  uint32_t enabled_lanes = 0;  // bit i: lane i of the 16-byte atom is converted
};

// The rows that a task has in CBUF: from which on, how many, where the first one is in a ring of units. Where `kept` is
// not 0, so many of them are the last ones of the task before.
struct KeptRows {
  int64_t address = 0, row_bytes = 0, rows = 0, kept = 0;
  int64_t first = 0, row_units = 0, ring_first = 0, ring_units = 0;

  int64_t unit_of(int64_t row) const { return ring_first + (first - ring_first + row * row_units) % ring_units; }
};

struct ConvJob {
  bool depthwise = false;
  // Input plane and where its bytes are. Lanes are channels as programmed, a multiple of the atom.
  int64_t in_width = 0, in_height = 0, in_lanes = 0;
  int64_t feature_address = 0, line_stride = 0, surface_stride = 0;  // strides in atoms, or pixels when packed
  bool line_by_line = false;                                         // else in groups of four
  int pixel_channels = 0;                                            // packed pixels of this many bytes; 0: cube
  bool reversed_pixels = false;                                      // a quirk: the last of these bytes first
  bool transposed = false;                                           // a quirk: rows of the plane are read as columns
  Converter converter;
  uint8_t pad[2] = {};  // byte outside the plane: depthwise, odd channels of the first 32 of 64: [1]; else [0]
  // Window.
  int64_t kernel_width = 1, kernel_height = 1, stride_x = 1, stride_y = 1, dilation_x = 1, dilation_y = 1;
  int64_t pad_left = 0, pad_top = 0;
  // Output.
  int64_t out_width = 0, out_height = 0, out_lanes = 0;
  // Weights.
  int64_t weight_address = 0, weight_bytes = 0, kernels = 0;
  bool weight_reuse = false;
  bool paired_weights = false;  // depthwise: a weight is the sum of two bytes, of slots of 16 bits
  bool first_bytes = false;     // a quirk: of these the first byte alone
  int64_t lost_bytes = 0;       // an erratum: of the weights, at their end
  uint32_t data_banks = 0, weight_banks = 0;
  KeptRows in_buffer;  // RK3576
  // Accumulator.
  unsigned truncate = 0;
  Tie truncate_tie = Tie::even;

  int64_t taps() const { return kernel_width * kernel_height; }
  int64_t pixels() const { return out_width * out_height; }
  // Lanes of a pixel in ConvOperands: padded with zeros for the matrix product.
  int64_t lane_stride() const;
  // Of the MAC array, at least: one for each pixel, tap and pair of groups.
  double cycles(const hw::ChipRow& chip) const;
  int64_t macs() const { return pixels() * taps() * (depthwise ? 1 : kernels) * lane_stride(); }
};

// Weights as one task reads them, and as the matrix product wants them.
struct ConvWeights {
  std::vector<int8_t> plain;          // [kernels][taps][lane_stride]; depthwise [taps][lane_stride]
  std::vector<int8_t> packed;         // for products of features + 128, where the CPU has these, and
  std::vector<int32_t> column_start;  // what is to be added then: [kernels]
  std::vector<int16_t> pairs;         // else; one more kernel, all ones, gives the sum of the window
};
// `bytes`: the bytes in CBUF.
ConvWeights read_weights(const ConvJob& job, std::span<const uint8_t> bytes);
// Of paired weights the second bytes; read_weights() gives the first ones.
ConvWeights second_weights(const ConvJob& job, std::span<const uint8_t> bytes);
// What one task may take of the simulator's time and memory.
Result<void> check_work(const ConvJob& job, const Options& options);

struct ConvOperands {
  std::vector<int8_t> features;  // [in_height][in_width][lane_stride]
  std::vector<int8_t> pad;       // [lane_stride]: what a position outside the plane counts as
  std::shared_ptr<const ConvWeights> weights;
};

// What the CORE hands to the DPU.
struct ConvSums {
  std::vector<int32_t> sum;     // [pixels][out_lanes]
  std::vector<int32_t> window;  // sum of the window's features: [pixels], depthwise [pixels][out_lanes]
};

// `touched` becomes the bytes of the feature cube.
Result<ConvOperands> read_operands(const ConvJob& job, const Options& options, const Dma& dma,
                                   std::shared_ptr<const ConvWeights> weights, Extent& touched);

// The definition: one output after the other.
ConvSums convolve_plain(const ConvJob& job, const ConvOperands& operands);
// The same result, quickly.
ConvSums convolve_fast(const ConvJob& job, const ConvOperands& operands);

}  // namespace skillet::sim::rockchip
