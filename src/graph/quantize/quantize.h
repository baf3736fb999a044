// A network whose weights have a scale per channel, with the fewest scales a layer that keep an error, by calibration
// data. Called by the command. Must not know: files, chips, how data is read.
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
  double error = 0.4;  // root mean square of a layer's outputs, in steps: fewer scales are not tried for less
  // Of a layer; 0: it stays as it is.
  std::function<size_t(ir::OpId)> scales_max;
  std::function<void(size_t done, size_t all)> progress;  // in layers; may be empty
};

struct Layer {
  ir::OpId op = -1;
  size_t scales_before = 0, scales = 0;
  // False: its input is the same in all of the data that calibrated, which shows nothing of the weights. `seen` is then
  // of inputs that are spread evenly over their type.
  bool input_varies = true;
  double headroom = 1;  // the most that a channel of its output grew
  Fit seen, held;       // on the data that calibrated, and on the data that did not
};
struct Quantized {
  ir::Graph graph;  // the model's tensors, new ones behind them; the same operations
  std::vector<Layer> layers;
};

// Layers that have more scales than one, and can be calibrated.
std::vector<ir::OpId> layers_of(const ir::Graph& model);

// Operations whose weights have several scales, and which cannot be calibrated: they stay as they are.
std::vector<ir::OpId> others_of(const ir::Graph& model);

// Each layer gets what the new network makes of `calibration` up to it. `held` decides nothing.
Result<Quantized> quantize(const ir::Graph& model, std::span<const Inputs> calibration, std::span<const Inputs> held,
                           const Options& options);

}  // namespace skillet::quantize
