// Lowering of whole files: the steps that a host does for parts of a graph.
#include <algorithm>

#include "base/text.h"
#include "frontend/onnx/lowering.h"

namespace skillet::onnx {

using ir::OpKind;
using ir::TensorId;

Result<void> Lowering::add_input(int value, const ir::Quant& quant_of_readers) {
  const Value& from = model_.value(value);
  ir::Tensor tensor{.name = printable(from.name), .dtype = from.dtype, .quant = quant_of_readers, .owner = {}};
  SK_TRY_ASSIGN(tensor.shape.dims, dims(value));
  const TensorId id = graph.add_tensor(std::move(tensor));
  inputs.push_back({.value = value, .tensor = id});
  add_ours(value, id);
  return {};
}

// Registers `id`, a value in the file's form with the quantization of its readers, as `value`; requantized to `type_`
// if necessary.
void Lowering::add_ours(int value, TensorId id) {
  const ir::Tensor& from = graph.tensor(id);
  if (model_.value(value).is_8bit() && !from.quant.empty() && from.dtype != type_) {
    const TensorId ours = temporary(std::vector(from.shape.dims), quant({.value = value, .quant = from.quant}));
    emit(OpKind::quantize, ir::NoAttrs{}, {id}, ours);
    id = ours;
  }
  known_[{value, Layout::plain}] = id;
}

Result<Layout> Lowering::layout_of(int value) const {
  for (const Layout layout : {Layout::plain, Layout::channels_last, Layout::rows})
    if (has(value, layout)) return layout;
  return error(ErrorCode::unsupported, "'{}' is not computed in this part", printable(model_.value(value).name));
}

// The result has the layout of the node's input.
Result<void> Lowering::add_quantization(int node) {
  const Node& from = model_.node(node);
  SK_TRY_ASSIGN(const ir::Quant stored, quant_of_node(model_, from));
  if (stored.per_channel())
    return error(ErrorCode::unsupported, "its result is not a constant but has a scale per channel");
  const int read = from.inputs[0], made = from.outputs[0];
  SK_TRY(dims(read));
  const Value& integer = model_.value(is_quantize(from) ? made : read);
  const ir::Quant ours =
      integer.is_8bit() ? quant({.value = is_quantize(from) ? made : read, .quant = stored}) : stored;
  if (is_quantize(from) && !has(read, Layout::plain) && !has(read, Layout::channels_last)) {
    SK_TRY_ASSIGN(const TensorId unused, find(read, Layout::plain));
    (void)unused;
  }
  SK_TRY_ASSIGN(const Layout layout, layout_of(read));
  const TensorId input = known_.at({read, layout});
  if (is_dequantize(from) && graph.tensor(input).quant != ours)
    return error(ErrorCode::unsupported, "'{}' has other scales where it is computed", printable(integer.name));
  if (layout == Layout::rows) images_[made] = images_.at(read);
  SK_TRY_ASSIGN(ir::Tensor tensor, tensor_of(made, is_quantize(from) ? ours : ir::Quant(), layout));
  if (layout == Layout::rows) tensor.shape.dims = graph.tensor(input).shape.dims;
  const size_t ops = graph.ops.size(), tensors = graph.tensors.size();
  index_ = node;
  const TensorId to = graph.add_tensor(std::move(tensor));
  emit(is_quantize(from) ? OpKind::quantize : OpKind::dequantize, ir::NoAttrs{}, {input}, to);
  known_[{made, layout}] = to;
  if (is_quantize(from)) quants_.try_emplace(made, ours);
  return or_undone(check(ops), ops, tensors);
}

// A tensor whose size is not known before the run gets no type, so that no other operation reads it.
Result<void> Lowering::add_opaque(int node, std::span<const ir::Quant> quants) {
  const Node& from = model_.node(node);
  const size_t ops = graph.ops.size(), tensors = graph.tensors.size();
  ir::Op op{.kind = OpKind::opaque,
            .opaque_name = printable(from.op),
            .attrs = ir::OpaqueAttrs{},
            .inputs = {},
            .outputs = {}};
  op.source_index = node;
  std::vector<std::pair<int, TensorId>> made;
  const auto fill = [&]() -> Result<void> {
    std::vector<int> all = from.inputs;
    all.insert(all.end(), from.inner_inputs.begin(), from.inner_inputs.end());
    for (const int value : all) {
      const bool is_there = value != kNone && !model_.value(value).is_constant;
      op.inputs.push_back(ir::kNoTensor);
      if (!is_there) continue;
      SK_TRY_ASSIGN(op.inputs.back(), as_in_file(value));
    }
    for (size_t i = 0; i < from.outputs.size(); ++i) {
      if (from.outputs[i] == kNone) continue;
      const Value& out = model_.value(from.outputs[i]);
      ir::Tensor tensor{.name = printable(out.name), .dtype = ir::DType::variant, .owner = {}};
      if (auto known = dims(from.outputs[i]); known.ok()) {
        tensor.dtype = out.dtype;
        tensor.quant = quants[i];
        tensor.shape.dims = *std::move(known);
      }
      op.outputs.push_back(graph.add_tensor(std::move(tensor)));
      made.emplace_back(from.outputs[i], op.outputs.back());
    }
    return {};
  };
  auto done = fill();
  if (!done.ok()) return or_undone(std::move(done), ops, tensors);
  graph.add_op(std::move(op));
  index_ = node;
  for (const auto& [value, id] : made) add_ours(value, id);
  return {};
}

Result<TensorId> Lowering::as_in_file(int value) {
  const Value& from = model_.value(value);
  SK_TRY_ASSIGN(const TensorId plain, find(value, Layout::plain));
  const ir::Tensor& have = graph.tensor(plain);
  if (have.dtype == from.dtype || have.dtype == ir::DType::variant) return plain;
  ir::Quant back = have.quant;
  for (int32_t& zero : back.zero_points) zero += from.dtype == ir::DType::int8 ? -128 : 128;
  const TensorId out = temporary_of(from.dtype, have.shape.dims, std::move(back));
  emit(OpKind::quantize, ir::NoAttrs{}, {plain}, out);
  return out;
}

TensorId Lowering::copy_of(TensorId id) {
  const ir::Tensor& from = graph.tensor(id);
  const std::vector<int32_t> dims = from.shape.dims;
  const TensorId copy = temporary_of(from.dtype, dims, from.quant);
  reshape(id, copy);
  return copy;
}

}  // namespace skillet::onnx
