// Weights of a convolution as the chip reads them: in the order of its blocks, and coded ("mlw"; hardware
// specification, section 6). Called by encode.cpp.
// Must not know: registers, buffers of a program.
#pragma once

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
  bool is_wide = false;       // the input has 16 bits
};

// Weights without their zero point: the first one, and how far behind it the next ones are.
struct Weights {
  const int16_t* first = nullptr;
  int64_t per_output = 0, per_tap = 0, per_input = 0;  // taps: along a row, then the next row
};
std::vector<int16_t> in_order(const WeightOrder& order, const Weights& weights);

// -255 to 255 each. Behind `before`; its size is a multiple of 16.
Bytes encode_weights(std::span<const int16_t> values, Bytes before = {});

}  // namespace skillet::npus::ethosu
