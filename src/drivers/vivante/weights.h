// Coefficient buffers of the V7 generation: weights, biases and output offsets of one NN job, split over the cores.
// Called by encode.cpp; filters are prepared by lower.cpp.
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

#include "base/bytes.h"
#include "drivers/vivante/operations.h"

namespace skillet::drivers::vivante {

// (row, column) of each weight of a patch in the order of the MAC array.
std::vector<int32_t> patch_order(int32_t height, int32_t width);  // indices row * width + column

// How the output channels are dealt to cores and superblocks (section 6.1).
struct KernelSplit {
  int32_t cores_used = 1;
  int32_t kernels_per_core = 1;  // in all superblocks
  int32_t superblocks = 1;
  int32_t kernels_per_superblock = 1;  // per core, in all but the last superblock
};
KernelSplit split_kernels(int32_t output_channels, int32_t nn_cores, int32_t superblocks);

struct CoefficientLayout {
  KernelSplit split;
  int32_t nn_cores = 1;
  int32_t zrl_bits_max = 0;  // 0: plain weight bytes
  bool six_channel_order = false;
  uint32_t plane_bytes = 0;  // of the output
};

struct Coefficients {
  Bytes bytes;
  uint32_t cache_bytes = 0;  // what the on-chip cache has to hold
  int32_t zrl_bits = 0;
};
Coefficients write_coefficients(const Kernels& kernels, const CoefficientLayout& layout);

}  // namespace skillet::drivers::vivante
