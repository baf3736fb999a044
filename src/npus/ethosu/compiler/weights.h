// Weights of a convolution as the chip reads them: in the order of its blocks, and coded ("mlw"; hardware
// specification, section 6). Called by encode.cpp.
// Must not know: registers, buffers of a program.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace skillet::npus::ethosu {

enum class Traversal : uint8_t { depth_first, part_kernel, depthwise };

struct WeightOrder {
  Traversal traversal = Traversal::depth_first;
  uint32_t outputs = 1, inputs = 1;  // channels; of a depthwise kernel inputs is 1
  uint32_t kernel_h = 1, kernel_w = 1;
  uint32_t dilation_h = 1, dilation_w = 1;
  uint32_t block_depth = 8;   // output channels of a block, of one core
  uint32_t ublock_depth = 8;  // that are computed at a time
};

// A weight without its zero point: output channel, row, column, input channel.
using Weight = std::function<int16_t(uint32_t o, uint32_t y, uint32_t x, uint32_t i)>;
std::vector<int16_t> in_order(const WeightOrder& order, const Weight& weight);

// -255 to 255 each. Its size is a multiple of 16.
Bytes encode_weights(std::span<const int16_t> values);

}  // namespace skillet::npus::ethosu
