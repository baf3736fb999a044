// Inputs of a layer with weights, as rows of its taps at randomly drawn places of its output; and the limits of its
// output. Called by rounding.cpp and quantize.cpp. Must not know: how weights are rounded, chips.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::quantize {

// Inputs minus their zero point; 0 outside the image.
struct Samples {
  size_t taps = 0, rows = 0;
  size_t matrices = 1;        // one for each group of channels; depthwise: for each output channel
  std::vector<float> values;  // [matrix][tap][row]
};

// True if sample() supports the op: a convolution, a depthwise or transposed one, or a fully connected layer.
bool can_sample(const ir::Graph& graph, ir::OpId op);
// `inputs`: the bytes of the op's first input, for each inference. The same inputs give the same rows.
Samples sample(const ir::Graph& graph, ir::OpId op, std::span<const std::span<const uint8_t>> inputs);

// True if the op's input differs between two places or two inferences, in any channel.
bool varies(const ir::Graph& graph, ir::OpId op, std::span<const std::span<const uint8_t>> inputs);
// Rows of inputs that are spread evenly over their type, each tap independently: for layers without useful data.
Samples spread_evenly(const ir::Graph& graph, ir::OpId op);

// Limits of the output minus its zero point, by its type and the fused activation.
struct Limits {
  double low = 0, high = 0;
};
Limits output_limits(const ir::Graph& graph, ir::OpId op);

}  // namespace skillet::quantize
