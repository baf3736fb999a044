// Reduces the scales of a network with weight scales per channel to the fewest per layer that keep an error, by
// calibration data. Called by the command. Must not know: files, chips, how data is read.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "graph/quantize/rounding.h"

namespace skillet::quantize {

using Inputs = std::vector<Bytes>;  // of one inference, in the order of Graph::inputs

struct Options {
  double error = 0.4;  // limit of the root mean square error of a layer's outputs, in steps
  // Limit for a layer; 0: the layer stays as it is.
  std::function<size_t(ir::OpId)> scales_max;
  std::function<void(size_t done, size_t all)> progress;  // in layers; may be empty
};

struct Layer {
  ir::OpId op = -1;
  size_t scales_before = 0, scales = 0;
  // False: the layer's input is the same in all calibration data, which shows nothing about the weights. `seen` is then
  // for inputs spread evenly over their type.
  bool input_varies = true;
  double headroom = 1;  // largest factor of a channel of its output
  Fit seen, held;       // on the calibration data, and on other data
};
struct Quantized {
  ir::Graph graph;  // the model's tensors, then new ones; the same operations
  std::vector<Layer> layers;
};

// Layers with more than one scale that can be calibrated.
std::vector<ir::OpId> layers_of(const ir::Graph& model);

// Operations whose weights have several scales but cannot be calibrated: they stay as they are.
std::vector<ir::OpId> others_of(const ir::Graph& model);

// Each layer is calibrated with the outputs of the new network's previous layers for `calibration`. `held` is only
// measured.
Result<Quantized> quantize(const ir::Graph& model, std::span<const Inputs> calibration, std::span<const Inputs> held,
                           const Options& options);

}  // namespace skillet::quantize
