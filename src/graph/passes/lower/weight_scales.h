// The weights of one layer with a scale per channel, and the same with fewer scales: numbers, and how far the outputs
// can move. Called by share_weight_scales.cpp and quantize/. Must not know: graphs but for reading a layer from one and
// giving it back, chips.
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

// A convolution, transposed ones among them, or fully connected layer with int8 weights.
struct WeightedLayer {
  size_t taps = 0;              // weights of a channel
  std::vector<int8_t> weights;  // [channel][tap]
  // By channel: the largest that inputs can make of bias + sum(weight * input), in magnitude, and without the bias.
  std::vector<double> largest_sums, spans;
  std::vector<int32_t> biases;  // by channel
  std::vector<float> scales;    // by channel
  double step = 0;              // input scale / output scale: times a weight scale, output steps of one unit of a sum
  double low = 0, high = 0;     // of input - zero point
  double output_reach = 0;      // the largest |output - zero point|

  size_t channels() const { return scales.size(); }
};
// None: the op has no constant int8 weights with different scales, or they are not as TensorFlow Lite means them.
std::optional<WeightedLayer> weighted_layer(const ir::Graph& graph, ir::OpId op);
// The op reads new tensors with the weights, biases and scales of `layer`. The old ones stay: other ops may read them,
// and code that runs the op on the CPU does. An op without bias gets none. False: a scale would leave floats, and the
// graph is as it was.
bool replace_weights(ir::Graph& graph, ir::OpId op, const WeightedLayer& layer);

struct SharedScales {
  WeightedLayer layer;
  size_t scales = 0;
  int worst = 0;  // see WeightChange
  double expected = 0;
};

// Channels that share a scale, each run a part of `order`: channels by scale, the largest first.
using Runs = std::vector<std::span<const size_t>>;
// At most `count` runs, such that the largest ratio of scales within a run is as small as it can be.
Runs fewest_runs(std::span<const float> scales, std::span<const size_t> order, size_t count);

// At most `scales_max` of them, such that outputs differ by 1 at most from the layer's own, whatever the input, when
// both round once. Weights stay as they are, or become 0 where they hardly move their channel's output. None: too few.
std::optional<SharedScales> share_exactly(const WeightedLayer& layer, size_t scales_max);

// Weights rounded to `scales` of them. The ratio between the scales that become one is as small as it can be.
SharedScales share(const WeightedLayer& layer, size_t scales);
// The least number of scales, up to `scales_max`, that more of them would not make much better.
size_t enough_scales(const WeightedLayer& layer, size_t scales_max);

}  // namespace skillet::passes
