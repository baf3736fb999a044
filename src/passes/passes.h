// passes/: everything that rewrites or divides a graph before a driver sees it; one line per pass.
// Called by runtime/ and tools.
// Must not know: chips (it asks the driver), devices, file formats.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/driver.h"
#include "ir/graph.h"

namespace skillet::passes {

// Passes of the pipeline. Tensors keep their ids; ops may get new ones (Op::source_index stays).
Result<void> remove_dead_ops(ir::Graph& graph);  // ops whose outputs nobody reads

// Runs all passes in order and verifies the graph before the first and after each one.
Result<void> run_pipeline(ir::Graph& graph);

// A part of a graph that runs in one place.
struct Partition {
  bool on_npu = false;
  std::vector<ir::OpId> op_map;  // ops of the original graph, in order; position = op id in `graph`
  // on_npu only: the ops as a graph of their own. Inputs: computed tensors from outside, in order of first use.
  // Outputs: tensors that other parts read or the original graph returns, in order of production.
  ir::Graph graph;
  std::vector<ir::TensorId> tensor_map;  // tensor of `graph` -> tensor of the original graph
};

struct Partitioning {
  std::vector<Partition> parts;          // in execution order
  std::vector<driver::Support> support;  // by op of the original graph
};

// Groups the ops that `driver` supports on `chip` into as few convex parts as the data flow allows: every part only
// needs what earlier parts computed. `driver` null: one part, on the CPU.
Partitioning partition(const ir::Graph& graph, const driver::Driver* driver, const driver::Chip& chip);

// Text form: a line per part, then its ops with the reasons of those that stay on the CPU.
std::string print(const ir::Graph& graph, const Partitioning& partitioning);

}  // namespace skillet::passes
