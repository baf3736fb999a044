#include <algorithm>

#include "graph/ir/rules.h"

namespace skillet::ir {
namespace {

// TFLite ignores the file's depth multiplier and divides the channel counts.
void infer_depth_multiplier(const Graph& graph, Op& op) {
  auto* attrs = std::get_if<ConvAttrs>(&op.attrs);
  if (op.kind != OpKind::depthwise_conv_2d || attrs == nullptr) return;
  if (op.input(0) == kNoTensor || op.input(1) == kNoTensor) return;
  const Shape &input = graph.tensor(op.inputs[0]).shape, &filter = graph.tensor(op.inputs[1]).shape;
  if (input.rank() == 0 || input.back(0) <= 0 || filter.back(0) % input.back(0) != 0) return;
  attrs->depth_multiplier = filter.back(0) / input.back(0);
}

// By tensor: the constant that replaces it in readers, or kNoTensor.
using Known = std::vector<TensorId>;

void read_known(Op& op, const Known& known) {
  for (TensorId& id : op.inputs) {
    if (id != kNoTensor && known[static_cast<size_t>(id)] != kNoTensor) id = known[static_cast<size_t>(id)];
  }
}

bool can_be_known(const Graph& graph, const Op& op) {
  const auto is_short = [](const Tensor& tensor) {
    constexpr int64_t kElemsMax = 256;
    return tensor.shape.elems() <= kElemsMax && !tensor.is_variable;
  };
  const auto is_given = [&](TensorId id) {
    return id == kNoTensor || (graph.tensor(id).is_constant() && is_short(graph.tensor(id)));
  };
  const auto is_list = [&](TensorId id) {
    const Tensor& tensor = graph.tensor(id);
    return (tensor.dtype == DType::int32 || tensor.dtype == DType::int64) && is_short(tensor);
  };
  return op.kind != OpKind::opaque && !op.inputs.empty() && std::ranges::all_of(op.outputs, is_list) &&
         (op.kind == OpKind::shape || std::ranges::all_of(op.inputs, is_given));
}

void add_known(Graph& graph, OpId id, const Evaluate& evaluate, Known& known) {
  std::vector<Tensor> constants = known_outputs(graph, id, evaluate);
  for (size_t i = 0; i < constants.size(); ++i) {
    known[static_cast<size_t>(graph.op(id).outputs[i])] = graph.add_tensor(std::move(constants[i]));
    known.push_back(kNoTensor);
  }
}

}  // namespace

std::vector<Tensor> known_outputs(const Graph& graph, OpId op, const Evaluate& evaluate) {
  std::vector<Tensor> constants;
  if (!can_be_known(graph, graph.op(op))) return constants;
  Result<std::vector<Bytes>> values = evaluate(graph, op);
  for (size_t i = 0; values.ok() && i < values->size(); ++i) {
    constants.push_back(graph.tensor(graph.op(op).outputs[i]));
    set_constant(constants.back(), std::move((*values)[i]));
  }
  return constants;
}

Result<void> infer_shapes(Graph& graph, const Evaluate& evaluate) {
  SK_TRY(check_structure(graph));
  Known known(graph.tensors.size(), kNoTensor);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    read_known(graph.ops[i], known);
    infer_depth_multiplier(graph, graph.ops[i]);
    Result<Shapes> shapes = check_op(graph, graph.ops[i]);
    if (!shapes) return std::move(shapes).error().with_context(describe_op(graph, static_cast<OpId>(i)));
    for (size_t j = 0; j < shapes->size(); ++j) graph.tensor(graph.ops[i].outputs[j]).shape = (*shapes)[j];
    if (evaluate) add_known(graph, static_cast<OpId>(i), evaluate, known);
  }
  return {};
}

}  // namespace skillet::ir
