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

// The rows of a task in CBUF: their address and number, and the place of the first one in a ring of units. `kept`: so
// many of them are the last rows of the task before.
struct KeptRows {
  int64_t address = 0, row_bytes = 0, rows = 0, kept = 0;
  int64_t first = 0, row_units = 0, ring_first = 0, ring_units = 0;

  int64_t unit_of(int64_t row) const { return ring_first + (first - ring_first + row * row_units) % ring_units; }
};

struct ConvJob {
  bool depthwise = false;
  // Input plane and the place of its bytes. Lanes are channels as programmed, a multiple of the atom.
  int64_t in_width = 0, in_height = 0, in_lanes = 0;
  int64_t feature_address = 0, line_stride = 0, surface_stride = 0;  // strides in atoms, or pixels when packed
  bool line_by_line = false;                                         // else in groups of four
  int pixel_channels = 0;                                            // packed pixels of this many bytes; 0: cube
  bool reversed_pixels = false;                                      // a quirk: the last of these bytes comes first
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
  bool paired_weights = false;  // depthwise: a weight is the sum of two bytes in a 16-bit slot
  bool first_bytes = false;     // a quirk: only the first of the two bytes counts
  int64_t lost_bytes = 0;       // an erratum: bytes missing at the end of the weights
  uint32_t data_banks = 0, weight_banks = 0;
  KeptRows in_buffer;  // RK3576
  // Accumulator.
  unsigned truncate = 0;
  Tie truncate_tie = Tie::even;

  int64_t taps() const { return kernel_width * kernel_height; }
  int64_t pixels() const { return out_width * out_height; }
  // Lanes of a pixel in ConvOperands: padded with zeros for the matrix product.
  int64_t lane_stride() const;
  // Least cycles of the MAC array: one for each pixel, tap and pair of groups.
  double cycles(const hw::ChipRow& chip) const;
  int64_t macs() const { return pixels() * taps() * (depthwise ? 1 : kernels) * lane_stride(); }
};

// Weights as one task reads them, and in the formats of the matrix product.
struct ConvWeights {
  std::vector<int8_t> plain;          // [kernels][taps][lane_stride]; depthwise [taps][lane_stride]
  std::vector<int8_t> packed;         // for products of features + 128, if the CPU has these
  std::vector<int32_t> column_start;  // added to the products of `packed`: [kernels]
  std::vector<int16_t> pairs;         // without `packed`; one more kernel, all ones, gives the sum of the window
};
// `bytes`: the bytes in CBUF.
ConvWeights read_weights(const ConvJob& job, std::span<const uint8_t> bytes);
// The second bytes of paired weights; read_weights() returns the first ones.
ConvWeights second_weights(const ConvJob& job, std::span<const uint8_t> bytes);
// Checks that one task stays within the simulator's limits of time and memory.
Result<void> check_work(const ConvJob& job, const Options& options);

struct ConvOperands {
  std::vector<int8_t> features;  // [in_height][in_width][lane_stride]
  std::vector<int8_t> pad;       // [lane_stride]: value of a position outside the plane
  std::shared_ptr<const ConvWeights> weights;
};

// The CORE's output to the DPU.
struct ConvSums {
  std::vector<int32_t> sum;     // [pixels][out_lanes]
  std::vector<int32_t> window;  // sum of the window's features: [pixels], depthwise [pixels][out_lanes]
};

// `touched` becomes the address range of the feature cube.
Result<ConvOperands> read_operands(const ConvJob& job, const Options& options, const Dma& dma,
                                   std::shared_ptr<const ConvWeights> weights, Extent& touched);

// The definition: computes one output after the other.
ConvSums convolve_plain(const ConvJob& job, const ConvOperands& operands);
// The same result, quickly.
ConvSums convolve_fast(const ConvJob& job, const ConvOperands& operands);

}  // namespace skillet::sim::rockchip
