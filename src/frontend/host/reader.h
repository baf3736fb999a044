// Reads a host's graph into ir::Graph, operation by operation. An operation that the IR cannot express stays with the
// host; the rest of the graph is still read.
// Called by the readers of hosts with TensorFlow Lite's operations. Must not know: hosts' structs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::host {

// Name of an operation by TensorFlow Lite's number; `custom`: the name of a custom operation, may be null.
std::string name_of(int code, const char* custom);
void make_opaque(ir::Op& op, const std::string& name);

class Reader {
 public:
  // `problem`: what the IR cannot express; empty: nothing. Operations on such a tensor become opaque.
  ir::TensorId add_tensor(ir::Tensor tensor, std::string problem);
  // An operation with a refusal becomes opaque.
  void add_op(ir::Op op, std::string refusal);
  // Returns the operation as a graph of its own, with inferred output shapes. None: it has become opaque.
  std::optional<ir::Graph> infer(size_t op);
  void refuse(size_t op, std::string reason);

  ir::Graph graph;
  std::vector<std::string> refusals;  // by op: why we cannot take it; empty if we may

 private:
  std::vector<std::string> problems_;  // by tensor
};

// Sets the quantization that a file or host gives. Ignores the axis for tensors of one dimension: odd, but harmless.
void set_quant(ir::Tensor& tensor, std::vector<float> scales, std::vector<int32_t> zero_points, int axis);

}  // namespace skillet::host
