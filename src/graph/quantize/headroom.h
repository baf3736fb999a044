// Headroom: a layer's output has one scale for all channels, of which many use few steps. A channel may grow into them
// where a depthwise layer alone reads it, whose weights for that channel shrink as much: the same results in real
// numbers, with scales that are closer together. Only scales and the second layer's biases change.
// Called by quantize.cpp. Must not know: calibration data, how weights are rounded.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/passes/lower/weight_scales.h"
#include "graph/quantize/samples.h"

namespace skillet::quantize {

// The depthwise layer with one filter a channel that alone reads what `op` makes, at once or through PAD. None: there
// is no such, or the two do not have a weight scale per channel.
std::optional<ir::OpId> depthwise_reader(const ir::Graph& graph, ir::OpId op);

// Of a channel's output minus its zero point, as seen.
struct Range {
  double low = 0, high = 0;
};
// How much larger each channel becomes, 1 or more. `limits`: of the output of `first`.
std::vector<double> headroom(const passes::WeightedLayer& first, const passes::WeightedLayer& second,
                             std::span<const Range> ranges, Limits limits);
void grow(passes::WeightedLayer& first, passes::WeightedLayer& second, std::span<const double> factors);

}  // namespace skillet::quantize
