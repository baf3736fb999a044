// A graph from a list of layers: what a compiler would get, with weights that are made up.
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
  size_t left_out = 0;  // layers that the graph has no operation for: what they give is an input of the graph
};

// Weights are normally distributed with about 6 bits of entropy a weight, as those of trained 8-bit networks, so that
// coefficients take what they would in a chip's coding. The same for the same layers.
Result<LayerGraph> graph_of(std::span<const sim::Layer> layers);

}  // namespace skillet::tools
