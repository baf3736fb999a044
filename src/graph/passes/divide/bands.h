// Bands: a run of layers as several graphs, each of which computes some rows of the outputs, for cores without shared
// memory.
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

// Rows computed in several bands (the halo) are those that later layers of a band need next to its own rows. A band's
// tensor may have more rows than needed, and these may differ from the run's: only the rows in `gives` are valid.
struct Band {
  ir::Graph graph;          // tensors have the ids of the run's; the band's own constants follow them
  std::vector<Rows> rows;   // by tensor of the run: the rows that the band has; constants: none
  std::vector<Rows> gives;  // by output of the run
};

// The ops that compute each row from nearby rows and have only such ops before them: the candidates for a run, in
// order.
std::vector<ir::OpId> row_wise_ops(const ir::Graph& graph);

// Requires that all ops of `run` are row-wise. Returns nothing if an output has fewer rows than `count`, or an op of a
// band would compute nothing.
std::vector<Band> split_bands(const ir::Graph& run, int count);

}  // namespace skillet::passes
