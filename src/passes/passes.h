// passes/: everything that rewrites or divides a graph before a driver sees it; one line per pass.
// Called by compile/.
// Must not know: chips (it asks the driver), devices, file formats.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/driver.h"
#include "ir/graph.h"

namespace skillet::passes {

// An op whose weights a pass replaced, and what that can cost.
struct WeightChange {
  ir::OpId op = -1;
  std::vector<ir::TensorId> inputs;  // of the op before
  size_t scales_before = 0, scales = 0;
  // Output steps between the CPU's result before and a chip's after, given the same input: the most that any input can
  // cause; and the root mean square for inputs that are spread evenly over their range, before rounding.
  int worst = 0;
  double expected = 0;

  // "96 weight scales become 4: up to 12 steps off, 0.40 expected"
  std::string text() const;
};

// What a graph is made ready for.
struct Target {
  const driver::Driver* driver = nullptr;  // borrowed; null: everything runs on the CPU
  driver::Chip chip;
  driver::PerChannel per_channel = driver::PerChannel::exact;
  std::vector<WeightChange>* weight_changes = nullptr;  // borrowed; where passes write down what they did to weights
};

// Passes of the pipeline. Tensors keep their ids; ops may get new ones (Op::source_index stays).
Result<void> remove_dead_ops(ir::Graph& graph, const Target& target);  // ops whose outputs nobody reads

// Weights that have more scales than the chip takes get fewer; last, since it names ops by their places.
Result<void> share_weight_scales(ir::Graph& graph, const Target& target);

// Runs all passes in order and verifies the graph before the first and after each one.
Result<void> run_pipeline(ir::Graph& graph, const Target& target);

// A part of a graph that runs in one place.
struct Partition {
  bool on_npu = false;
  std::vector<ir::OpId> op_map;  // ops of the original graph, in order; position = op id in `graph`
  // on_npu only: the ops as a graph of their own. Inputs: computed tensors from outside, in order of first use.
  // Outputs: tensors that other parts read or the original graph returns, in order of production.
  ir::Graph graph;
  std::vector<ir::TensorId> tensor_map;  // tensor of `graph` -> tensor of the original graph
};

// By op: what the target's driver says of it.
std::vector<driver::Support> supports(const ir::Graph& graph, const Target& target);

// Groups the ops that are supported into as few convex parts as the data flow allows, in execution order: every part
// only needs what earlier parts computed.
std::vector<Partition> partition(const ir::Graph& graph, std::span<const driver::Support> support);

// `part` of `graph` as those ops of its graph, which need none of the others, and the rest where there is one.
std::vector<Partition> cut(const ir::Graph& graph, const Partition& part, std::span<const ir::OpId> head);

}  // namespace skillet::passes
