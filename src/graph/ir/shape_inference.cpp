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
    const bool is_type = tensor.dtype == DType::int32 || tensor.dtype == DType::int64 || tensor.dtype == DType::boolean;
    return is_type && is_short(tensor);
  };
  return op.kind != OpKind::opaque && !op.inputs.empty() && std::ranges::all_of(op.outputs, is_list) &&
         (op.kind == OpKind::shape || std::ranges::all_of(op.inputs, is_given));
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

TensorId ShapeInference::known(TensorId id) const {
  const auto at = static_cast<size_t>(id);
  return id == kNoTensor || at >= known_.size() || known_[at] == kNoTensor ? id : known_[at];
}

void ShapeInference::forget(size_t first) {
  known_.resize(std::min(known_.size(), first));
  for (TensorId& id : known_)
    if (id != kNoTensor && static_cast<size_t>(id) >= first) id = kNoTensor;
}

Result<void> ShapeInference::infer(OpId id) {
  Op& op = graph_.ops[static_cast<size_t>(id)];
  for (TensorId& input : op.inputs) input = known(input);
  infer_depth_multiplier(graph_, op);
  Result<Shapes> shapes = check_op(graph_, op);
  if (!shapes) return std::move(shapes).error().with_context(describe_op(graph_, id));
  for (size_t i = 0; i < shapes->size(); ++i) graph_.tensor(op.outputs[i]).shape = (*shapes)[i];
  if (!evaluate_) return {};
  std::vector<Tensor> constants = known_outputs(graph_, id, evaluate_);
  if (constants.empty()) return {};
  known_.resize(graph_.tensors.size(), kNoTensor);
  for (size_t i = 0; i < constants.size(); ++i)
    known_[static_cast<size_t>(op.outputs[i])] = graph_.add_tensor(std::move(constants[i]));
  return {};
}

Result<void> infer_shapes(Graph& graph, const Evaluate& evaluate) {
  SK_TRY(check_structure(graph));
  ShapeInference inference(graph, evaluate);
  for (size_t i = 0; i < graph.ops.size(); ++i) SK_TRY(inference.infer(static_cast<OpId>(i)));
  return {};
}

}  // namespace skillet::ir
