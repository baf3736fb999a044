#include "graph/import/planned_memory.h"

#include <cstdlib>
#include <numeric>
#include <vector>

#include "tflite_schema_generated.h"

namespace skillet::tflite {
namespace {

constexpr size_t kHeader = 3;
constexpr int64_t kMemoryMax = int64_t{1} << 28;  // of an operation, bytes

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

// An offset of 32 bits for each tensor follows the header of three numbers, the last of which says how many.
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
  if (size < 0 || size > kMemoryMax) return;  // verify() says that nobody computes it
  std::shared_ptr<void> zeros(std::calloc(static_cast<size_t>(size), 1), std::free);
  if (zeros == nullptr) return;
  tensor.data = {static_cast<const uint8_t*>(zeros.get()), static_cast<size_t>(size)};
  tensor.owner = std::move(zeros);
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
  for (const ir::Op& op : graph.ops) {
    for (const ir::TensorId id : op.inputs) {
      if (op.kind != ir::OpKind::opaque || id < 0 || static_cast<size_t>(id) >= is_given.size()) continue;
      ir::Tensor& tensor = graph.tensor(id);
      if (!is_given[static_cast<size_t>(id)] && !tensor.is_constant() && !tensor.is_variable) make_zeros(tensor);
    }
  }
}

}  // namespace skillet::tflite
