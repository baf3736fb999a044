#include "frontend/onnx/part.h"

#include <algorithm>

namespace skillet::onnx {
namespace {

Port port_of(const Model& model, int host_value, const Edge& edge, const ir::Tensor& tensor, size_t index) {
  const Value& value = model.value(host_value);
  Port port{.name = value.name, .dims = *value.dims, .n = edge.n, .c = edge.c, .hw = edge.hw};
  if (port.c == 1 || port.hw == 1) port = {.name = value.name, .dims = *value.dims, .n = port.elems()};
  port.is_float = !value.is_8bit();
  port.is_signed = tensor.dtype == ir::DType::int8;
  port.flips = !port.is_float && value.dtype != tensor.dtype;
  port.session_port = index;
  return port;
}

// Nodes at the border may have other scales than the nodes inside.
bool set_quant(Port& port, const Model& model, const Node& node, const ir::Tensor& tensor) {
  const auto quant = quant_of_node(model, node);
  const Value& integer = model.value(is_quantize(node) ? node.outputs[0] : node.inputs[0]);
  if (!quant.ok() || quant->per_channel()) return false;
  port.scale = quant->scale();
  port.zero_point = quant->zero_point();
  if (integer.dtype != tensor.dtype) port.zero_point += port.is_signed ? -128 : 128;
  return true;
}

}  // namespace

bool Part::has(int node) const { return std::ranges::count(nodes_, node) != 0; }

void Part::add_input(const Model& model, const Links& links, const std::vector<bool>& taken, const Edge& edge,
                     size_t index) {
  const ir::Tensor& tensor = session_->graph().tensor(edge.tensor);
  const int producer = links.producer[static_cast<size_t>(edge.value)];
  const auto& readers = links.consumers[static_cast<size_t>(edge.value)];
  const bool is_mine = std::ranges::all_of(readers, [&](int node) { return has(node); });
  // A QuantizeLinear that another part has quantizes that part's result.
  const bool is_free = producer != kNone && !taken[static_cast<size_t>(producer)];
  if (is_free && is_quantize(model.node(producer)) && is_mine && !model.value(edge.value).is_output) {
    const int real = model.node(producer).inputs[0];
    const Value& value = model.value(real);
    if (value.dtype == ir::DType::float32 && value.dims && !value.is_constant &&
        value.dims == model.value(edge.value).dims) {
      Port port = port_of(model, real, edge, tensor, index);
      if (set_quant(port, model, model.node(producer), tensor)) {
        if (!has(producer)) nodes_.push_back(producer);
        return inputs_.push_back(std::move(port));
      }
    }
  }
  inputs_.push_back(port_of(model, edge.value, edge, tensor, index));
}

void Part::add_output(const Model& model, const Links& links, const std::vector<bool>& taken, const Edge& edge,
                      size_t index) {
  const ir::Tensor& tensor = session_->graph().tensor(edge.tensor);
  for (const int node : links.consumers[static_cast<size_t>(edge.value)]) {
    if (taken[static_cast<size_t>(node)] || has(node) || !is_dequantize(model.node(node)) ||
        model.node(node).inputs[0] != edge.value)
      continue;
    const int real = model.node(node).outputs[0];
    const Value& value = model.value(real);
    // Hosts leave out unused outputs.
    if (links.consumers[static_cast<size_t>(real)].empty() && !value.is_output) continue;
    if (value.dtype != ir::DType::float32 || value.dims != model.value(edge.value).dims) continue;
    Port port = port_of(model, real, edge, tensor, index);
    if (!set_quant(port, model, model.node(node), tensor)) continue;
    nodes_.push_back(node);
    outputs_.push_back(std::move(port));
  }
  const auto& readers = links.consumers[static_cast<size_t>(edge.value)];
  const bool is_read = std::ranges::any_of(readers, [&](int node) { return !has(node); });
  if (is_read || model.value(edge.value).is_output) outputs_.push_back(port_of(model, edge.value, edge, tensor, index));
}

Result<std::unique_ptr<Part>> Part::create(const Model& model, const Links& links, std::vector<int> nodes,
                                           const std::vector<bool>& taken, std::span<const Edge> inputs,
                                           std::span<const Edge> outputs, std::unique_ptr<runtime::Session> session) {
  std::unique_ptr<Part> part(new Part);
  part->nodes_ = std::move(nodes);
  part->session_ = std::move(session);
  for (size_t i = 0; i < inputs.size(); ++i) part->add_input(model, links, taken, inputs[i], i);
  for (size_t i = 0; i < outputs.size(); ++i) part->add_output(model, links, taken, outputs[i], i);
  std::ranges::sort(part->nodes_);
  part->stage();
  return part;
}

std::unique_ptr<Part> Part::of(std::vector<int> nodes, std::vector<Port> inputs, std::vector<Port> outputs,
                               std::unique_ptr<runtime::Session> session) {
  std::unique_ptr<Part> part(new Part);
  part->nodes_ = std::move(nodes);
  part->inputs_ = std::move(inputs);
  part->outputs_ = std::move(outputs);
  part->session_ = std::move(session);
  part->stage();
  return part;
}

void Part::stage() {
  const ir::Graph& graph = session_->graph();
  for (const ir::TensorId id : graph.inputs) staged_in_.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
  for (const ir::TensorId id : graph.outputs) staged_out_.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
  in_.resize(staged_in_.size());
  out_.resize(staged_out_.size());
}

std::string Part::summary() const {
  size_t jobs = 0;
  for (size_t i = 0; i < session_->report().parts.size(); ++i) {
    for (const npu::Program* program : session_->programs(i)) jobs += program->jobs.size();
  }
  return fmt::format("{} nodes, {} jobs", nodes_.size(), jobs);
}

Result<void> Part::run(std::span<const std::span<const uint8_t>> inputs, std::span<void* const> outputs) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs[i].size() != inputs_[i].host_bytes())
      return error(ErrorCode::invalid_argument, "input '{}' has {} bytes; it was prepared for {}", inputs_[i].name,
                   inputs[i].size(), inputs_[i].host_bytes());
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Port& port = inputs_[i];
    if (port.is_as_it_is()) {
      in_[port.session_port] = inputs[i];
      continue;
    }
    copy_in(port, inputs[i].data(), staged_in_[port.session_port]);
    in_[port.session_port] = staged_in_[port.session_port];
  }
  for (size_t i = 0; i < out_.size(); ++i) out_[i] = staged_out_[i];
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].is_as_it_is())
      out_[outputs_[i].session_port] = {static_cast<uint8_t*>(outputs[i]), outputs_[i].host_bytes()};
  }
  SK_TRY(session_->run_on(in_, out_));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].is_as_it_is()) copy_out(outputs_[i], out_[outputs_[i].session_port], outputs[i]);
  }
  return {};
}

}  // namespace skillet::onnx
