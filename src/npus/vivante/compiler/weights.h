// Coefficient buffers: weights, biases and headers of one NN job, in the format of the chip's generation.
// Called by encode.cpp; filters are prepared by filters.cpp and addition.cpp.
// Must not know: graphs, descriptors, device addresses.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

// How the output channels are distributed to cores and superblocks (section 6.1).
struct KernelSplit {
  int32_t cores_used = 1;
  int32_t kernels_per_core = 1;  // in all superblocks
  int32_t superblocks = 1;
  int32_t kernels_per_superblock = 1;  // per core, in all but the last superblock
};
KernelSplit split_kernels(int32_t output_channels, int32_t nn_cores, int32_t superblocks);

struct Coefficients {
  Bytes bytes;
  uint32_t cache_bytes = 0;  // bytes that the on-chip cache has to hold
  int32_t zrl_bits = 0;      // V7
};
Coefficients write_coefficients(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split);

// Sizes of one buffer in bytes, for reports; 0: not known for the chip's format.
struct CoefficientSizes {
  int64_t raw = 0;       // one byte per weight, and the biases
  int64_t recorded = 0;  // as coded by the recorded driver
  int64_t smallest = 0;  // with the best symbol map
  int64_t format = 0;    // the best of all symbol maps, without padding and header
  int64_t entropy = 0;   // the best of all codes of single bytes, without padding and header
};
CoefficientSizes coefficient_sizes(const hw::ChipRow& chip, const NnOperation& op, const KernelSplit& split);

// The kernels with all input channels as their band: `outside` is written outside of the original bands.
Kernels without_bands(const Kernels& kernels, uint8_t outside);

}  // namespace skillet::npus::vivante
