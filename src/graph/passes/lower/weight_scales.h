// The weights of one layer with a scale per channel, and the same layer with fewer scales, with the largest change of
// its outputs. Called by share_weight_scales.cpp and quantize/. Must not know: chips; graphs, except to read a layer
// and write it back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::passes {

// Which operands of a layer are its image and its biases; the weights are operand 1.
struct LayerOperands {
  size_t image = 0, bias = 2;
};
LayerOperands layer_operands(const ir::Op& op);

// A convolution, transposed convolution or fully connected layer with int8 weights.
struct WeightedLayer {
  size_t taps = 0;              // weights of a channel
  std::vector<int8_t> weights;  // [channel][tap]
  // By channel: the largest magnitude of bias + sum(weight * input) for any input, and the same without the bias.
  std::vector<double> largest_sums, spans;
  std::vector<int32_t> biases;  // by channel
  std::vector<float> scales;    // by channel
  double step = 0;              // input scale / output scale: times a weight scale, the output steps per unit of a sum
  double low = 0, high = 0;     // of input - zero point
  double output_reach = 0;      // the largest |output - zero point|

  size_t channels() const { return scales.size(); }
};
// Nothing if the op has no constant int8 weights with different scales, or has them in a form that TensorFlow Lite does
// not use.
std::optional<WeightedLayer> weighted_layer(const ir::Graph& graph, ir::OpId op);
// Gives the op new tensors with the weights, biases and scales of `layer`. The old tensors stay, because other ops and
// code that runs the op on the CPU may read them. An op without bias gets none. Returns false and leaves the graph
// unchanged if a scale does not fit a float.
bool replace_weights(ir::Graph& graph, ir::OpId op, const WeightedLayer& layer);

struct SharedScales {
  WeightedLayer layer;
  size_t scales = 0;
  int worst = 0;  // see WeightChange
  double expected = 0;
};

// Groups of channels that share a scale. Each run is a part of `order`: channels by scale, the largest first.
using Runs = std::vector<std::span<const size_t>>;
// At most `count` runs, with the least possible ratio of scales within a run.
Runs fewest_runs(std::span<const float> scales, std::span<const size_t> order, size_t count);

// At most `scales_max` scales, such that outputs differ from the layer's own by at most 1 for any input, if both round
// once. Weights stay as they are, or become 0 if they hardly change their channel's output. Nothing if more scales are
// needed.
std::optional<SharedScales> share_exactly(const WeightedLayer& layer, size_t scales_max);

// Rounds weights to `scales` scales, with the least possible ratio between scales that become one.
SharedScales share(const WeightedLayer& layer, size_t scales);
// The least number of scales, up to `scales_max`, beyond which more would not reduce the error much.
size_t enough_scales(const WeightedLayer& layer, size_t scales_max);

}  // namespace skillet::passes
