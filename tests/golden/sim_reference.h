// Reference results of single layers, and of cases whose output was not recorded.
// Called by sim_replay.cpp and sim_layers.cpp.
// Must not know: captures, simulators.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "golden_case.h"
#include "graph/ir/graph.h"
#include "sim_case.h"

namespace skillet::golden {

// Runs the case's model on its inputs; returns the graph's outputs in order.
Result<std::vector<Bytes>> run_reference(const GoldenCase& c);

// Returns the recorded bytes; if only their hash was kept, bytes with that hash; and the reference kernels' results for
// inputs that we made.
Result<std::vector<Bytes>> expected_outputs(const ReplayCase& c);

// Runs ops of a graph one by one; the caller may replace values in between.
class LayerReference {
 public:
  explicit LayerReference(const ir::Graph& graph);  // borrowed
  Bytes& value(ir::TensorId tensor) { return values_[static_cast<size_t>(tensor)]; }
  Result<void> run(ir::OpId op);

 private:
  const ir::Graph& graph_;
  std::vector<Bytes> values_;
};

}  // namespace skillet::golden
