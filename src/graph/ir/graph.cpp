#include "graph/ir/graph.h"

namespace skillet::ir {
namespace {

bool in_range(const Graph& graph, TensorId id) { return id >= 0 && static_cast<size_t>(id) < graph.tensors.size(); }

}  // namespace

Graph::Graph() = default;
Graph::Graph(std::string graph_name) : name(std::move(graph_name)) {}
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

int64_t Tensor::bytes() const {
  // Two int4 values share a byte; the last byte may be half used.
  if (dtype == DType::int4) return (shape.elems() + 1) / 2;
  return shape.elems() * dtype_bytes(dtype);
}

TensorId Graph::add_tensor(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size() - 1);
}

OpId Graph::add_op(Op op) {
  ops.push_back(std::move(op));
  return static_cast<OpId>(ops.size() - 1);
}

void set_constant(Tensor& tensor, Bytes bytes) {
  const size_t size_bytes = bytes.size();
  // A null data pointer means "computed", so an empty constant needs an address too.
  if (bytes.empty()) bytes.push_back(0);
  auto owner = std::make_shared<const Bytes>(std::move(bytes));
  tensor.data = std::span(owner->data(), size_bytes);
  tensor.owner = std::move(owner);
}

std::string op_number(const Op& op) { return op.source_index < 0 ? "-" : fmt::format("{}", op.source_index); }

// Messages of verify() also call this, for graphs that are not verified (yet).
std::string describe_op(const Graph& graph, OpId id) {
  if (id < 0 || static_cast<size_t>(id) >= graph.ops.size()) return fmt::format("op {} (no such op)", id);
  const Op& op = graph.op(id);
  std::string text = fmt::format("op {} {}", op.source_index < 0 ? id : op.source_index, op_name(op));
  if (!op.outputs.empty() && in_range(graph, op.outputs[0])) {
    text += fmt::format(" -> '{}'", graph.tensor(op.outputs[0]).name);
  }
  return text;
}

std::string describe_tensor(const Graph& graph, TensorId id) {
  if (!in_range(graph, id)) return fmt::format("tensor {} (no such tensor)", id);
  const Tensor& tensor = graph.tensor(id);
  return fmt::format("tensor {} '{}' {} {}", id, tensor.name, dtype_name(tensor.dtype), tensor.shape.to_string());
}

std::vector<OpId> producers(const Graph& graph) {
  std::vector<OpId> result(graph.tensors.size(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    for (TensorId id : graph.ops[i].outputs) {
      if (in_range(graph, id)) result[static_cast<size_t>(id)] = static_cast<OpId>(i);
    }
  }
  return result;
}

std::vector<std::vector<OpId>> consumers(const Graph& graph) {
  std::vector<std::vector<OpId>> result(graph.tensors.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    for (TensorId id : graph.ops[i].inputs) {
      if (!in_range(graph, id)) continue;
      auto& list = result[static_cast<size_t>(id)];
      // An op that reads a tensor twice (x * x) is listed once.
      if (list.empty() || list.back() != static_cast<OpId>(i)) list.push_back(static_cast<OpId>(i));
    }
  }
  return result;
}

}  // namespace skillet::ir
