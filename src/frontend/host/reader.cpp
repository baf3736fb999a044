#include "frontend/host/reader.h"

#include <algorithm>

#include "base/text.h"
#include "frontend/host/one_op.h"
#include "graph/import/import.h"
#include "graph/ir/settle.h"

namespace skillet::host {

std::string name_of(int code, const char* custom) {
  if (custom != nullptr) return custom;
  const std::string_view name = tflite::builtin_name(code);
  return name.empty() ? fmt::format("BUILTIN_{}", code) : std::string(name);
}

void make_opaque(ir::Op& op, const std::string& name) {
  op.kind = ir::OpKind::opaque;
  op.opaque_name = printable(name);  // from an untrusted file, like names of tensors
  op.attrs = ir::default_attrs(ir::OpKind::opaque);
}

ir::TensorId Reader::add_tensor(ir::Tensor tensor, std::string problem) {
  if (problem.empty()) {
    ir::Graph alone;
    alone.add_tensor(tensor);
    if (auto checked = ir::verify(alone); !checked.ok()) problem = checked.error().message;
  }
  // Only opaque operations may use such a tensor.
  if (!problem.empty()) tensor = {.name = tensor.name, .dtype = ir::DType::variant};
  problems_.resize(graph.tensors.size());
  problems_.push_back(std::move(problem));
  return graph.add_tensor(std::move(tensor));
}

void Reader::add_op(ir::Op op, std::string refusal) {
  problems_.resize(graph.tensors.size());
  for (const auto* operands : {&op.inputs, &op.outputs}) {
    for (const ir::TensorId id : *operands) {
      if (id == ir::kNoTensor || !refusal.empty() || problems_[static_cast<size_t>(id)].empty()) continue;
      refusal = fmt::format("{}: {}", ir::describe_tensor(graph, id), problems_[static_cast<size_t>(id)]);
    }
  }
  const ir::OpId id = graph.add_op(std::move(op));
  refusals.emplace_back();
  if (refusal.empty()) {
    if (auto settled = ir::settle_filter(graph, id); !settled.ok()) refusal = settled.error().message;
  }
  if (!refusal.empty()) refuse(static_cast<size_t>(id), std::move(refusal));
}

void Reader::refuse(size_t op, std::string reason) {
  refusals[op] = std::move(reason);
  if (graph.ops[op].kind != ir::OpKind::opaque)
    make_opaque(graph.ops[op], std::string(ir::op_kind_name(graph.ops[op].kind)));
}

std::optional<ir::Graph> Reader::infer(size_t op) {
  if (graph.ops[op].kind == ir::OpKind::opaque) return std::nullopt;
  ir::Graph alone = only(graph, graph.ops[op]);
  auto checked = ir::infer_shapes(alone);
  if (checked.ok()) checked = ir::verify(alone);
  if (checked.ok()) return alone;
  const std::string &reason = checked.error().message, self = ir::describe_op(alone, 0) + ": ";
  refuse(op, reason.starts_with(self) ? reason.substr(self.size()) : reason);
  return std::nullopt;
}

void set_quant(ir::Tensor& tensor, std::vector<float> scales, std::vector<int32_t> zero_points, int axis) {
  tensor.quant = {std::move(scales), std::move(zero_points)};
  if (tensor.quant.scales.size() > 1 && tensor.shape.rank() != 1) tensor.quant.axis = axis;
}

}  // namespace skillet::host
