// Headroom: a layer's output has one scale for all channels, and many channels use few of its steps. A channel can be
// scaled up if only a depthwise layer reads it, whose weights for that channel are scaled down by as much. The real
// results stay the same, and the weight scales get closer. Only scales and the second layer's biases change.
// Called by quantize.cpp. Must not know: calibration data, how weights are rounded.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/passes/lower/weight_scales.h"
#include "graph/quantize/samples.h"

namespace skillet::quantize {

// The depthwise layer with one filter per channel that is the only reader of `op`'s output, directly or through PAD.
// None if there is no such layer, or the two do not have a weight scale per channel.
std::optional<ir::OpId> depthwise_reader(const ir::Graph& graph, ir::OpId op);

// Observed range of a channel's output minus its zero point.
struct Range {
  double low = 0, high = 0;
};
// Factor for each channel, 1 or more. `limits`: of the output of `first`.
std::vector<double> headroom(const passes::WeightedLayer& first, const passes::WeightedLayer& second,
                             std::span<const Range> ranges, Limits limits);
void grow(passes::WeightedLayer& first, passes::WeightedLayer& second, std::span<const double> factors);

}  // namespace skillet::quantize
