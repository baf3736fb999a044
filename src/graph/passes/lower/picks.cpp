#include "graph/passes/lower/picks.h"

#include <algorithm>
#include <utility>

#include "graph/ref/ref.h"

namespace skillet::passes {
namespace {

std::vector<int32_t> place_of(int64_t element, const ir::Shape& shape) {
  std::vector<int32_t> out(shape.dims.size(), 0);
  for (size_t axis = out.size(); axis-- > 0;) {
    out[axis] = static_cast<int32_t>(element % shape.dims[axis]);
    element /= shape.dims[axis];
  }
  return out;
}

}  // namespace

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

std::optional<Box> box_of(const std::vector<int32_t>& elements, const ir::Shape& shape) {
  if (elements.empty() || std::ranges::min(elements) < 0) return std::nullopt;
  Box out{.begin = place_of(elements.front(), shape), .size = place_of(elements.back(), shape)};
  ir::Shape box;
  for (size_t axis = 0; axis < out.size.size(); ++axis) {
    out.size[axis] += 1 - out.begin[axis];
    if (out.size[axis] < 1) return std::nullopt;
    box.dims.push_back(out.size[axis]);
  }
  if (box.elems() != std::ssize(elements)) return std::nullopt;
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t element = 0;
    const std::vector<int32_t> place = place_of(static_cast<int64_t>(i), box);
    for (size_t axis = 0; axis < place.size(); ++axis)
      element = element * shape.dims[axis] + out.begin[axis] + place[axis];
    if (element != elements[i]) return std::nullopt;
  }
  return out;
}

ir::Op slice_of(Rewriter& rewriter, ir::TensorId image, const Box& box, ir::TensorId to) {
  const std::string name = rewriter.tensor(to).name;
  ir::Op slice{.kind = ir::OpKind::slice};
  slice.inputs = {image, rewriter.add_ints(name + "/begin", box.begin), rewriter.add_ints(name + "/size", box.size)};
  slice.outputs = {to};
  return slice;
}

ir::TensorId picks_in_order(Rewriter& rewriter, std::string name, ir::DType dtype, ir::Shape shape) {
  const auto count = static_cast<size_t>(shape[0]);
  Bytes ones(count * count, 0);
  for (size_t i = 0; i < count; ++i) ones[i * count + i] = 1;
  return rewriter.add_constant(std::move(name), dtype, std::move(shape), std::move(ones), {{1.0F}, {0}, 0});
}

}  // namespace skillet::passes
