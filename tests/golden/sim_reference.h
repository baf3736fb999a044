// The reference results of a case where no recorded output was kept, and of single layers.
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

// Runs the case's model on its inputs; the graph's outputs in order.
Result<std::vector<Bytes>> run_reference(const GoldenCase& c);

// What the recording says: its bytes, or where only their hash was kept, bytes of that hash. Inputs of our own making
// have no recorded output: the reference kernels stand in.
Result<std::vector<Bytes>> expected_outputs(const ReplayCase& c);

// Runs ops of a graph one by one on values that the caller may replace in between.
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
