// Weight streams: their compression ("mlw"), and the order of their weights (hardware specification, section 6).
// Called by the convolutions of npus/ethosu/sim.
// Must not know: registers, memory.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"

namespace skillet::sim::ethosu {

// All values of a stream, minus their zero point: -255 to 255. `most`: a longer stream is an error.
Result<std::vector<int16_t>> decode_weights(std::span<const uint8_t> stream, uint64_t most);

enum class Traversal : uint8_t { depth_first, part_kernel, depthwise };

struct WeightOrder {
  Traversal traversal = Traversal::depth_first;
  uint32_t output_depth = 1, input_depth = 1;  // of this stream; input_depth is 1 for a depthwise kernel
  uint32_t kernel_height = 1, kernel_width = 1;
  uint32_t dilation_y = 1, dilation_x = 1;
  uint32_t block_depth = 1;   // output channels of a block, for this core
  uint32_t ublock_depth = 8;  // channels computed at a time
  bool is_16bit = false;      // the input has 16 bits
};
// Number of values of a stream with this order.
uint64_t count_of(const WeightOrder& order);
// The values as [row][column][output channel][input channel] of the kernel. Error: too few.
Result<std::vector<int16_t>> ordered(std::span<const int16_t> values, const WeightOrder& order);

}  // namespace skillet::sim::ethosu
