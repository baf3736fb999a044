// Loops, branches and calls are replaced by the operations that they run, so that a graph has no subgraphs.
// Called by the importer.
// Must not know: kernels.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "tflite_schema_generated.h"

namespace skillet::tflite {

// The subgraphs of the file that an operator runs. WHILE: condition and body; IF: then and else; CALL and
// STABLEHLO_COMPOSITE: one.
struct SubgraphCall {
  enum class Kind : uint8_t { loop, branch, call } kind;
  int64_t first, second;
};

// Nothing if the operator of builtin code `code` runs no subgraphs, or does not say which.
std::optional<SubgraphCall> subgraph_call(int32_t code, const schema::Operator& from);

// A subgraph as the file has it. Operations in `calls` are opaque in `graph`.
struct Section {
  ir::Graph graph;
  std::map<ir::OpId, SubgraphCall> calls;
};
// Reads subgraph `index`, which has passed check_structure().
using ReadSection = std::function<Result<Section>(uint32_t index)>;

// Does what ir::infer_shapes() does, and replaces the operations of `calls`. A WHILE becomes as many copies of its body
// as it has steps, if that number follows from shapes and constants. An IF becomes the branch that it takes, or both
// branches and a SELECT_V2. What cannot be replaced stays opaque. `subgraphs`: how many the file has.
Result<void> expand_control_flow(ir::Graph& graph, const std::map<ir::OpId, SubgraphCall>& calls, size_t subgraphs,
                                 const ReadSection& read, const ir::Evaluate& evaluate);

}  // namespace skillet::tflite
