// Weights of a convolution in the chip's format: in the order of its blocks, and compressed ("mlw"; hardware
// specification, section 6). Called by coded.cpp.
// Must not know: registers, buffers of a program.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"

namespace skillet::npus::ethosu {

enum class Traversal : uint8_t { depth_first, part_kernel, depthwise };

struct WeightOrder {
  Traversal traversal = Traversal::depth_first;
  uint32_t outputs = 1, inputs = 1;  // channels; inputs is 1 for a depthwise kernel
  uint32_t kernel_h = 1, kernel_w = 1;
  uint32_t dilation_h = 1, dilation_w = 1;
  uint32_t block_depth = 8;   // output channels of a block, for one core
  uint32_t ublock_depth = 8;  // channels computed at a time
  bool is_wide = false;       // the input has 16 bits
};

// Weights minus their zero point: the first one, and the distances to the next ones.
struct Weights {
  const int16_t* first = nullptr;
  int64_t per_output = 0, per_tap = 0, per_input = 0;  // taps: along a row, then the next row
};
std::vector<int16_t> in_order(const WeightOrder& order, const Weights& weights);

// Values are -255 to 255. Appends to `before`, whose size is a multiple of 16.
Bytes encode_weights(std::span<const int16_t> values, Bytes before = {});

}  // namespace skillet::npus::ethosu
