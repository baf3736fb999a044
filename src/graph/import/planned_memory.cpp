#include "graph/import/planned_memory.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "tflite_schema_generated.h"

namespace skillet::tflite {
namespace {

constexpr size_t kHeader = 3;
constexpr int64_t kMemoryMax = int64_t{1} << 28;  // bytes of one operation

std::span<const uint8_t> plan_of(const schema::Model& model) {
  if (model.metadata() == nullptr || model.buffers() == nullptr) return {};
  for (const schema::Metadata* one : *model.metadata()) {
    if (one->name() == nullptr || one->name()->string_view() != kMemoryPlan || one->buffer() >= model.buffers()->size())
      continue;
    const auto* data = model.buffers()->Get(one->buffer())->data();
    if (data != nullptr) return {data->data(), data->size()};
  }
  return {};
}

}  // namespace

// A header of three numbers, the last of which is the count, is followed by a 32-bit offset for each tensor.
void set_planned_places(std::span<const uint8_t> plan, size_t tensors, std::span<const int> number_of,
                        ir::Graph& graph) {
  if (plan.size() != (kHeader + tensors) * 4) return;
  for (size_t i = 0; i < number_of.size(); ++i) {
    if (number_of[i] < 0 || static_cast<size_t>(number_of[i]) >= tensors) continue;
    const auto offset = load_le<int32_t>(plan.data() + 4 * (kHeader + static_cast<size_t>(number_of[i])));
    if (offset >= 0) graph.tensors[i].planned_at = static_cast<uint64_t>(offset);
  }
}

void make_zeros(ir::Tensor& tensor) {
  const int64_t size = tensor.bytes();
  if (size == 0) return ir::set_constant(tensor, {});
  if (size < 0 || size > kMemoryMax) return;  // verify() reports that no op computes it
  std::shared_ptr<void> zeros(std::calloc(static_cast<size_t>(size), 1), std::free);
  if (zeros == nullptr) return;
  tensor.data = {static_cast<const uint8_t*>(zeros.get()), static_cast<size_t>(size)};
  tensor.owner = std::move(zeros);
}

namespace {

// If a later operation writes a tensor again, the new value becomes a separate tensor.
void rename_made_again(ir::Graph& graph, std::vector<ir::TensorId>& added) {
  std::vector<bool> is_made(graph.tensors.size());
  std::vector<ir::TensorId> now(graph.tensors.size());
  std::iota(now.begin(), now.end(), 0);
  const auto rename = [&](std::vector<ir::TensorId>& ids) {
    for (ir::TensorId& id : ids) {
      if (id >= 0 && static_cast<size_t>(id) < now.size()) id = now[static_cast<size_t>(id)];
    }
  };
  for (ir::Op& op : graph.ops) {
    rename(op.inputs);
    for (ir::TensorId& id : op.outputs) {
      if (id < 0 || static_cast<size_t>(id) >= is_made.size()) continue;
      const auto at = static_cast<size_t>(id);
      if (is_made[at] && op.kind == ir::OpKind::opaque) {
        added.push_back(id);
        id = now[at] = graph.add_tensor(ir::Tensor(graph.tensors[at]));
      }
      is_made[at] = true;
    }
  }
  rename(graph.outputs);
}

// Memory that several operations use carries data from one to the next. Only an operation's first memory counts.
void hand_on_memory(const std::vector<bool>& is_memory, ir::Graph& graph, std::vector<ir::TensorId>& added) {
  const auto memory_of = [&](const ir::Op& op) {
    const auto found = std::ranges::find_if(op.inputs, [&](ir::TensorId id) {
      return id >= 0 && static_cast<size_t>(id) < is_memory.size() && is_memory[static_cast<size_t>(id)];
    });
    return op.kind != ir::OpKind::opaque || found == op.inputs.end() ? ir::kNoTensor : *found;
  };
  std::vector<int> users_left(is_memory.size());
  std::vector<ir::TensorId> now(is_memory.size());
  std::iota(now.begin(), now.end(), 0);
  for (const ir::Op& op : graph.ops) {
    if (const ir::TensorId id = memory_of(op); id != ir::kNoTensor) ++users_left[static_cast<size_t>(id)];
  }
  for (ir::Op& op : graph.ops) {
    const ir::TensorId id = memory_of(op);
    if (id == ir::kNoTensor) continue;
    const auto at = static_cast<size_t>(id);
    std::ranges::replace(op.inputs, id, now[at]);
    if (--users_left[at] == 0) continue;
    ir::Tensor left = graph.tensor(id);
    left.data = {};
    left.owner = nullptr;
    left.name = fmt::format("{} after {}", left.name, graph.tensor(op.inputs[0]).name);
    op.outputs.push_back(now[at] = graph.add_tensor(std::move(left)));
    added.push_back(ir::kNoTensor);
  }
}

}  // namespace

std::vector<ir::TensorId> separate_values(const std::vector<bool>& is_memory, ir::Graph& graph) {
  std::vector<ir::TensorId> added;
  rename_made_again(graph, added);
  hand_on_memory(is_memory, graph, added);
  return added;
}

std::vector<ir::OpId> joined_by_memory(const ir::Graph& graph) {
  const auto producers = ir::producers(graph);
  const auto hands_on = [&](ir::TensorId id) {
    if (id == ir::kNoTensor || producers[static_cast<size_t>(id)] < 0) return false;
    const ir::Tensor& tensor = graph.tensor(id);
    return tensor.planned_at && tensor.dtype == ir::DType::uint8 && tensor.shape.rank() == 1 &&
           tensor.quant.scales.empty() && graph.op(producers[static_cast<size_t>(id)]).kind == ir::OpKind::opaque;
  };
  ir::OpId first = -1, last = -1;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.ops[i].kind != ir::OpKind::opaque) continue;
    for (const ir::TensorId id : graph.ops[i].inputs) {
      if (!hands_on(id)) continue;
      first = first < 0 ? producers[static_cast<size_t>(id)] : first;
      last = static_cast<ir::OpId>(i);
    }
  }
  std::vector<ir::OpId> out(first < 0 ? 0 : static_cast<size_t>(last - first + 1));
  std::iota(out.begin(), out.end(), first);
  return out;
}

void add_planned_memory(const schema::Model& model, ir::Graph& graph) {
  std::vector<int> numbers(graph.tensors.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  set_planned_places(plan_of(model), numbers.size(), numbers, graph);
  std::vector<bool> is_given(graph.tensors.size());
  const auto give = [&](const std::vector<ir::TensorId>& ids) {
    for (const ir::TensorId id : ids) {
      if (id >= 0 && static_cast<size_t>(id) < is_given.size()) is_given[static_cast<size_t>(id)] = true;
    }
  };
  give(graph.inputs);
  for (const ir::Op& op : graph.ops) give(op.outputs);
  std::vector<bool> is_memory(graph.tensors.size());
  for (const ir::Op& op : graph.ops) {
    for (const ir::TensorId id : op.inputs) {
      if (op.kind != ir::OpKind::opaque || id < 0 || static_cast<size_t>(id) >= is_given.size()) continue;
      ir::Tensor& tensor = graph.tensor(id);
      if (is_given[static_cast<size_t>(id)] || tensor.is_constant() || tensor.is_variable) continue;
      make_zeros(tensor);
      is_memory[static_cast<size_t>(id)] = tensor.planned_at.has_value();
    }
  }
  separate_values(is_memory, graph);
}

}  // namespace skillet::tflite
