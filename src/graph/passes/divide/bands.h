// Bands: a run of layers as graphs that compute some rows of its outputs each, for cores that share no memory.
// Called by compile/.
// Must not know: chips, devices, what a band costs.
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace skillet::passes {

struct Rows {
  int32_t begin = 0, end = 0;
  int32_t count() const { return end - begin; }
  bool operator==(const Rows&) const = default;
};

// What is computed in several bands, the halo, is what later layers of the band need of rows next to its own. Rows of a
// band's tensor may be more than are needed, and then not those of the run: only what the band gives is.
struct Band {
  ir::Graph graph;          // tensors have the ids of the run's; constants of its own are behind them
  std::vector<Rows> rows;   // by tensor of the run: where the band's tensor is in it; constants: none
  std::vector<Rows> gives;  // by output of the run
};

// The ops that compute rows from rows nearby and come after none but such: what a run can be made of, in order.
std::vector<ir::OpId> row_wise_ops(const ir::Graph& graph);

// All ops of `run` are row-wise. Empty: an output has fewer rows than there are to be bands, or a band would compute
// nothing somewhere.
std::vector<Band> split_bands(const ir::Graph& run, int count);

}  // namespace skillet::passes
