#include "graph/passes/lower/picks.h"

#include <utility>

#include "graph/ref/ref.h"

namespace skillet::passes {

size_t image_operand(const ir::Op& op) { return op.kind == ir::OpKind::split ? 1 : 0; }

std::vector<std::vector<int32_t>> picked(const Rewriter& rewriter, ir::Op op) {
  ir::Graph graph;
  const auto add = [&](ir::TensorId& id, bool is_number) {
    ir::Tensor tensor = rewriter.tensor(id);
    if (is_number) tensor.dtype = ir::DType::int32, tensor.quant = {};
    id = graph.add_tensor(std::move(tensor));
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool is_image = i == image_operand(op);
    if (op.inputs[i] == ir::kNoTensor || (!is_image && !rewriter.tensor(op.inputs[i]).is_constant())) return {};
    add(op.inputs[i], is_image);
  }
  for (ir::TensorId& output : op.outputs) add(output, true);
  graph.inputs = {op.inputs[image_operand(op)]};
  graph.outputs = op.outputs;
  graph.add_op(op);
  auto cpu = ref::Interpreter::create(graph);
  if (!cpu.ok()) return {};
  const std::span<uint8_t> numbers = cpu->tensor(graph.inputs[0]);
  for (size_t i = 0; i < numbers.size() / 4; ++i) store_le(numbers.data() + 4 * i, static_cast<int32_t>(i + 1));
  if (!cpu->run().ok()) return {};
  std::vector<std::vector<int32_t>> out;
  for (const ir::TensorId output : graph.outputs) {
    const std::span<const uint8_t> results = cpu->tensor(output);
    std::vector<int32_t>& one = out.emplace_back(results.size() / 4);
    for (size_t i = 0; i < one.size(); ++i) one[i] = load_le<int32_t>(results.data() + 4 * i) - 1;
  }
  return out;
}

ir::TensorId picks_in_order(Rewriter& rewriter, std::string name, ir::DType dtype, ir::Shape shape) {
  const auto count = static_cast<size_t>(shape[0]);
  Bytes ones(count * count, 0);
  for (size_t i = 0; i < count; ++i) ones[i * count + i] = 1;
  return rewriter.add_constant(std::move(name), dtype, std::move(shape), std::move(ones), {{1.0F}, {0}, 0});
}

}  // namespace skillet::passes
