// Parts by levels. The parts are CPU 0, NPU 0, CPU 1, NPU 1, ...; an op goes to the earliest part of its kind that does
// not precede the part of any of its producers. Every edge goes forward, so each part is convex. The number of parts is
// the least that the longest alternation CPU/NPU along a path allows.
#include <algorithm>
#include <map>
#include <optional>

#include "graph/ir/rules.h"
#include "graph/passes/passes.h"

namespace skillet::passes {
namespace {

bool has_row_pads(const ir::Op& op) {
  const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs);
  const auto* pool = std::get_if<ir::PoolAttrs>(&op.attrs);
  return (conv != nullptr && conv->rows) || (pool != nullptr && pool->rows);
}

// The ops that must come before `op`: producers of its inputs, and earlier users of the variables it touches.
class Dependencies {
 public:
  explicit Dependencies(const ir::Graph& graph)
      : graph_(graph), producers_(ir::producers(graph)), last_user_(graph.tensors.size(), -1) {}

  // Must be called for ops in order.
  std::vector<ir::OpId> of(ir::OpId id) {
    std::vector<ir::OpId> result;
    const ir::Op& op = graph_.op(id);
    for (const auto* operands : {&op.inputs, &op.outputs}) {
      for (const ir::TensorId tensor : *operands) {
        if (tensor == ir::kNoTensor) continue;
        const auto at = static_cast<size_t>(tensor);
        if (operands == &op.inputs && producers_[at] >= 0 && producers_[at] < id) result.push_back(producers_[at]);
        if (!graph_.tensor(tensor).is_variable) continue;
        if (last_user_[at] >= 0) result.push_back(last_user_[at]);
        last_user_[at] = id;
      }
    }
    return result;
  }

 private:
  const ir::Graph& graph_;
  std::vector<ir::OpId> producers_;
  std::vector<ir::OpId> last_user_;  // of variables
};

// Copies a part's ops and tensors into a graph of their own.
class PartBuilder {
 public:
  PartBuilder(const ir::Graph& graph, const std::vector<size_t>& part_of_op,
              const std::vector<std::vector<ir::OpId>>& consumers)
      : graph_(graph), part_of_op_(part_of_op), consumers_(consumers) {}

  void build(Partition& part, size_t index) {
    new_id_.assign(graph_.tensors.size(), ir::kNoTensor);
    part.graph.name = fmt::format("{}/part{}", graph_.name, index);
    for (const ir::OpId id : part.op_map) {
      ir::Op op = graph_.op(id);
      for (ir::TensorId& tensor : op.inputs) tensor = input(part, tensor);
      for (ir::TensorId& tensor : op.outputs) tensor = output(part, tensor, index);
      part.graph.add_op(std::move(op));
    }
  }

 private:
  ir::TensorId& add(Partition& part, ir::TensorId tensor) {
    ir::TensorId& id = new_id_[static_cast<size_t>(tensor)];
    id = part.graph.add_tensor(graph_.tensor(tensor));
    part.tensor_map.push_back(tensor);
    return id;
  }

  ir::TensorId input(Partition& part, ir::TensorId tensor) {
    if (tensor == ir::kNoTensor) return tensor;
    if (const ir::TensorId known = new_id_[static_cast<size_t>(tensor)]; known != ir::kNoTensor) return known;
    const ir::TensorId id = add(part, tensor);
    if (!graph_.tensor(tensor).is_constant()) part.graph.inputs.push_back(id);
    return id;
  }

  ir::TensorId output(Partition& part, ir::TensorId tensor, size_t index) {
    const ir::TensorId id = add(part, tensor);
    const auto leaves = [&](ir::OpId op) { return part_of_op_[static_cast<size_t>(op)] != index; };
    if (std::ranges::any_of(consumers_[static_cast<size_t>(tensor)], leaves) ||
        std::ranges::find(graph_.outputs, tensor) != graph_.outputs.end())
      part.graph.outputs.push_back(id);
    return id;
  }

  const ir::Graph& graph_;
  const std::vector<size_t>& part_of_op_;
  const std::vector<std::vector<ir::OpId>>& consumers_;
  std::vector<ir::TensorId> new_id_;
};

// Order of the keys: the CPU part of a level comes before its NPU part.
using PartKey = std::pair<int, bool>;  // level, on_npu

std::map<PartKey, std::vector<ir::OpId>> group(const ir::Graph& graph, std::span<const npu::Support> support) {
  std::map<PartKey, std::vector<ir::OpId>> groups;
  std::vector<int> level(graph.ops.size(), 0);
  Dependencies dependencies(graph);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    for (const ir::OpId before : dependencies.of(static_cast<ir::OpId>(i))) {
      const auto at = static_cast<size_t>(before);
      const bool back_to_cpu = support[at].ok && !support[i].ok;
      const bool is_alone = support[at].ok && support[i].ok && (support[at].alone || support[i].alone);
      level[i] = std::max(level[i], level[at] + (back_to_cpu || is_alone ? 1 : 0));
    }
    groups[{level[i], support[i].ok}].push_back(static_cast<ir::OpId>(i));
  }
  return groups;
}

// What drop_unit_mul writes for a MUL that changes no byte.
bool only_changes_scale(const ir::Graph& graph, const ir::Op& op) {
  if (op.kind != ir::OpKind::reshape) return false;
  const ir::Tensor &from = graph.tensor(op.input(0)), &to = graph.tensor(op.outputs[0]);
  return ir::is_8bit(from.dtype) && from.dtype == to.dtype && from.shape == to.shape && from.quant != to.quant;
}

}  // namespace

bool touches_variable(const ir::Graph& graph, const ir::Op& op) {
  const auto is_variable = [&](ir::TensorId id) { return id != ir::kNoTensor && graph.tensor(id).is_variable; };
  return std::ranges::any_of(op.inputs, is_variable) || std::ranges::any_of(op.outputs, is_variable);
}

npu::Support support_of(const ir::Graph& graph, const Target& target, ir::OpId op) {
  if (target.driver == nullptr) return npu::Support::no(npu::Remedy::device, "no NPU was requested or found");
  if (touches_variable(graph, graph.op(op))) return npu::Support::no(npu::Remedy::none, "keeps a value between runs");
  if (ir::has_empty_operand(graph, graph.op(op))) return npu::Support::no(npu::Remedy::none, "has no elements");
  if (has_row_pads(graph.op(op)) && !target.driver->costs(target.chip, {}))
    return npu::Support::no(npu::Remedy::none, "has its own padding of rows");
  npu::Support support = target.driver->supports(target.chip, graph, op);
  if (!support.ok && only_changes_scale(graph, graph.op(op)))
    return npu::Support::no(npu::Remedy::none,
                            "its result has the same bytes, with another scale: nothing is computed");
  return support;
}

std::vector<npu::Support> supports(const ir::Graph& graph, const Target& target) {
  std::vector<npu::Support> result;
  for (size_t i = 0; i < graph.ops.size(); ++i) result.push_back(support_of(graph, target, static_cast<ir::OpId>(i)));
  return result;
}

std::vector<Partition> partition(const ir::Graph& graph, std::span<const npu::Support> support) {
  std::vector<Partition> parts;
  for (auto& [key, ops] : group(graph, support)) parts.push_back({.on_npu = key.second, .op_map = std::move(ops)});
  build_graphs(graph, parts);
  return parts;
}

void build_graphs(const ir::Graph& graph, std::vector<Partition>& parts) {
  std::vector<size_t> part_of_op(graph.ops.size());
  for (size_t i = 0; i < parts.size(); ++i)
    for (const ir::OpId op : parts[i].op_map) part_of_op[static_cast<size_t>(op)] = i;
  const auto consumers = ir::consumers(graph);
  PartBuilder builder(graph, part_of_op, consumers);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].on_npu) builder.build(parts[i], i);
  }
}

std::vector<Partition> cut(const ir::Graph& graph, const Partition& part, std::span<const ir::OpId> head) {
  std::vector<Partition> parts(head.size() < part.op_map.size() ? 2 : 1, {.on_npu = part.on_npu});
  std::vector<size_t> part_of_op(graph.ops.size(), parts.size());
  for (size_t i = 0; i < part.op_map.size(); ++i) {
    const size_t which = std::ranges::find(head, static_cast<ir::OpId>(i)) != head.end() ? 0 : 1;
    parts[which].op_map.push_back(part.op_map[i]);
    part_of_op[static_cast<size_t>(part.op_map[i])] = which;
  }
  const auto consumers = ir::consumers(graph);
  PartBuilder builder(graph, part_of_op, consumers);
  for (size_t i = 0; i < parts.size(); ++i) builder.build(parts[i], i);
  return parts;
}

}  // namespace skillet::passes
