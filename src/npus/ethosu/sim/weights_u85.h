// Order of the weights of an Ethos-U85, whose code is that of the others (hardware specification, appendix E).
// Called by the convolutions of npus/ethosu/sim.
// Must not know: registers, memory.
#pragma once

#include "npus/ethosu/sim/weights.h"

namespace skillet::sim::ethosu {

// `of_all`: of all streams; its ublock_depth too.
struct StreamedOrder {
  WeightOrder of_all;
  uint32_t stride_y = 1, stride_x = 1;
  uint32_t streams = 1;  // that take four output channels each in turn
  uint32_t macs = 128;   // of the chip
};
// How many values each of the streams has.
uint64_t count_of(const StreamedOrder& order);
// The values by [row][column][output channel][input channel] of the kernel. Error: a stream has too few, or weights
// where there is no channel.
Result<std::vector<int16_t>> ordered(std::span<const std::vector<int16_t>> streams, const StreamedOrder& order);

}  // namespace skillet::sim::ethosu
