// Coefficient buffers of the V8 generation: Huffman-coded weights of one NN job, split over the cores, and its biases.
// Called by weights.cpp and the compression report.
// Must not know: graphs, descriptors, device addresses.
//
// The format (specification section 6.3):
//
//   header   64 bytes: version, symbol map at 20, u32 bits of each core's stream from 28 on
//   streams  one after the other, each padded to 64 bytes; the bytes that a stream codes:
//     kernel count (u16), then superblock after superblock, in each blocks outside and kernels inside:
//       9 weights minus their zero point, of the list [input channel][row][column]
//   biases   u32 per output channel
//
// Native depthwise filters are one block each; their channels are dealt to the cores in turn.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "npus/vivante/compiler/weights.h"

namespace skillet::npus::vivante {

// Filters of one NN job in plain order: [output channel][input channel][row][column].
struct FilterView {
  int32_t output_channels = 0;
  int32_t weights_per_kernel = 0;  // input channels (depthwise: 1) * height * width
  bool depthwise = false;
  uint8_t zero_point = 0;  // subtracted from weights before they are sent
  uint8_t model_xor = 0;   // XOR that restores the model's own byte of a weight: 0x80 for int8 models
  std::span<const uint8_t> weights;
  std::span<const int32_t> biases;  // per output channel, as the table holds them
};

Coefficients write_streams_v8(const FilterView& filter, const KernelSplit& split, SymbolMapChoice choice);

Coefficients write_coefficients_v8(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split);

CoefficientSizes sizes_v8(const FilterView& filter, const KernelSplit& split);
CoefficientSizes coefficient_sizes_v8(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split);

}  // namespace skillet::npus::vivante
