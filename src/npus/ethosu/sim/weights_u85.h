// Order of the weights of an Ethos-U85. The compression is that of the other chips (hardware specification, appendix
// E).
// Called by the convolutions of npus/ethosu/sim.
// Must not know: registers, memory.
#pragma once

#include "npus/ethosu/sim/weights.h"

namespace skillet::sim::ethosu {

// `of_all`: for all streams together, including its ublock_depth.
struct StreamedOrder {
  WeightOrder of_all;
  uint32_t stride_y = 1, stride_x = 1;
  uint32_t streams = 1;  // each gets four output channels in rotation
  uint32_t macs = 128;   // of the chip
};
// Number of values in each stream.
uint64_t count_of(const StreamedOrder& order);
// The values as [row][column][output channel][input channel] of the kernel. Error: a stream has too few, or has weights
// where there is no channel.
Result<std::vector<int16_t>> ordered(std::span<const std::vector<int16_t>> streams, const StreamedOrder& order);

}  // namespace skillet::sim::ethosu
