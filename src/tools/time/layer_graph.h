// Makes a graph from a list of layers, as input for a compiler, with random weights.
// Called by `skillet plan --layers --program open`.
// Must not know: chips, times.
#pragma once

#include <span>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "sim/timing.h"

namespace skillet::tools {

struct LayerGraph {
  ir::Graph graph;
  size_t left_out = 0;  // layers without a matching operation: their outputs become inputs of the graph
};

// Weights are normally distributed with an entropy of about 6 bits, like those of trained 8-bit networks, so that coded
// coefficients have realistic sizes. The same layers give the same weights.
Result<LayerGraph> graph_of(std::span<const sim::Layer> layers);

}  // namespace skillet::tools
