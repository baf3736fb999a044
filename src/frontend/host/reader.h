// A host's graph as ir::Graph, operation by operation: what is odd about one stays with the host, and does not cost the
// whole graph.
// Called by the readers of hosts that speak of TensorFlow Lite's operations. Must not know: hosts' structs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::host {

// By the number that TensorFlow Lite has for it, and the name of a custom operation, which may be null.
std::string name_of(int code, const char* custom);
void make_opaque(ir::Op& op, const std::string& name);

class Reader {
 public:
  // `problem`: what the IR cannot express. Operations that touch such a tensor are opaque.
  ir::TensorId add_tensor(ir::Tensor tensor, std::string problem);
  // With a refusal it becomes opaque.
  void add_op(ir::Op op, std::string refusal);
  // The operation alone, with the shapes of its outputs that follow. None: it is opaque, by now.
  std::optional<ir::Graph> infer(size_t op);
  void refuse(size_t op, std::string reason);

  ir::Graph graph;
  std::vector<std::string> refusals;  // by op: why it cannot be ours; empty where it may be

 private:
  std::vector<std::string> problems_;  // by tensor
};

// Quantization as files and hosts tell it: odd, but harmless is the axis of a list of scales for one dimension.
void set_quant(ir::Tensor& tensor, std::vector<float> scales, std::vector<int32_t> zero_points, int axis);

}  // namespace skillet::host
