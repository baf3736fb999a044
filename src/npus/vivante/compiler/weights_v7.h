// Coefficient buffers of the V7 generation: weights, biases and output offsets of one NN job, split over the cores.
// Called by weights.cpp.
// Must not know: graphs, descriptors, device addresses.
//
// The format (specification section 6.2):
//
//   header   u32[nn_cores], padded to 64 bytes: bytes of each core's stream, a multiple of 64; 0 for cores without work
//   streams  one after the other, each:
//     zrl_bits (8 bits), kernel count (16 bits), then LSB-first items without alignment:
//       weight symbol   run (zrl_bits bits), value (8 bits): `run` weights equal to the zero point, then `value`
//       bias            32 bits, after the first weight of each kernel
//       output offset   32 bits, after the last weight of each kernel: bytes from the output address to its plane
//     zero bits to a multiple of 32, zero bytes to a multiple of 64
//
// Order of weights: superblock, input channel, kernel, patch; with six_channel_order superblock, six channels, kernel.
// A patch is the filter of one channel in pieces of 2 rows x 3 columns:
//
//    5x5:   00 01 02 | 03 04      the pieces are read left to right, top to bottom; each row by row
//           10 11 12 | 13 14
//           ---------+------
//           20 21 22 | 23 24
//           ...
#pragma once

#include <cstdint>
#include <vector>

#include "npus/vivante/compiler/weights.h"

namespace skillet::npus::vivante {

// Indices row * width + column of the weights of a patch in the order of the MAC array: the plain order up to 3
// columns.
std::vector<int32_t> patch_order(int32_t height, int32_t width);

struct CoefficientLayout {
  KernelSplit split;
  int32_t nn_cores = 1;
  int32_t zrl_bits_max = 0;  // 0: plain weight bytes
  bool six_channel_order = false;
  uint32_t plane_bytes = 0;  // of the output
};

Coefficients write_streams_v7(const Kernels& kernels, const CoefficientLayout& layout);

Coefficients write_coefficients_v7(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split);
CoefficientSizes coefficient_sizes_v7(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split);

}  // namespace skillet::npus::vivante
