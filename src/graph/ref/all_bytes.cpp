#include "graph/ref/all_bytes.h"

#include <map>

namespace skillet::ref {
namespace {

constexpr int32_t kBytes = 256;

// A separate graph, in which all computed tensors have one shape.
class Trial {
 public:
  Trial(const ir::Graph& from, std::span<const ir::Op> ops, const ir::Shape& shape) : from_(from), shape_(shape) {
    for (ir::Op op : ops) {
      for (ir::TensorId& id : op.inputs) id = own(id);
      for (ir::TensorId& id : op.outputs) id = own(id);
      graph_.add_op(std::move(op));
    }
  }

  // value(k, i): byte i of input k.
  template <typename Value>
  Result<Bytes> run(const std::vector<ir::TensorId>& inputs, ir::TensorId to, Value value) {
    for (const ir::TensorId id : inputs) graph_.inputs.push_back(own(id));
    graph_.outputs = {own(to)};
    SK_TRY_ASSIGN(Interpreter cpu, Interpreter::create(graph_));
    for (size_t k = 0; k < inputs.size(); ++k) {
      const std::span<uint8_t> bytes = cpu.tensor(graph_.inputs[k]);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(k, i);
    }
    SK_TRY(cpu.run());
    const std::span<uint8_t> results = cpu.tensor(graph_.outputs[0]);
    return Bytes(results.begin(), results.end());
  }

 private:
  ir::TensorId own(ir::TensorId id) {
    if (id == ir::kNoTensor) return id;
    const auto [at, added] = own_.try_emplace(id, ir::kNoTensor);
    if (!added) return at->second;
    ir::Tensor tensor = from_.tensor(id);
    if (!tensor.is_constant()) tensor.shape = shape_;
    return at->second = graph_.add_tensor(std::move(tensor));
  }

  const ir::Graph& from_;
  const ir::Shape shape_;
  ir::Graph graph_;
  std::map<ir::TensorId, ir::TensorId> own_;
};

}  // namespace

Result<Bytes> of_all_bytes(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to) {
  const auto channels = static_cast<size_t>(graph.tensor(to).shape.back(0));
  Trial trial(graph, ops, {1, 1, kBytes, static_cast<int32_t>(channels)});
  return trial.run({from}, to, [&](size_t, size_t i) { return static_cast<uint8_t>(i / channels); });
}

Result<Bytes> of_each_byte(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to) {
  Trial trial(graph, ops, {1, 1, kBytes, 1});
  return trial.run({from}, to, [](size_t, size_t i) { return static_cast<uint8_t>(i); });
}

Result<Bytes> of_each_int16(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId from, ir::TensorId to) {
  Trial trial(graph, ops, {1, 1, kBytes * kBytes, 1});
  return trial.run({from}, to, [](size_t, size_t i) { return static_cast<uint8_t>(i / 2 >> (i % 2 == 0 ? 0 : 8)); });
}

Result<Bytes> of_all_pairs(const ir::Graph& graph, std::span<const ir::Op> ops, ir::TensorId a, ir::TensorId b,
                           ir::TensorId to) {
  const int32_t channels = graph.tensor(a).shape.back(0);
  Trial trial(graph, ops, {1, 1, (kBytes * kBytes - 1) / channels + 1, channels});
  return trial.run({a, b}, to, [](size_t which, size_t i) { return static_cast<uint8_t>(which == 0 ? i >> 8 : i); });
}

}  // namespace skillet::ref
