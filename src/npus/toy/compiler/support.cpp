#include "npus/toy/compiler/support.h"

#include <algorithm>

namespace skillet::npus::toy {
namespace {

using npu::Remedy;
using npu::Support;

constexpr ir::OpKind kTaken[] = {ir::OpKind::relu, ir::OpKind::maximum};

// Whether the toy takes a tensor by itself.
Support takes(const hw::ChipRow& chip, const ir::Tensor& tensor) {
  const ir::Quant& quant = tensor.quant;
  if (tensor.dtype != ir::DType::uint8)
    return Support::no(npu::remedy_of_type(tensor.dtype), "'{}' is {}; the toy works on uint8", tensor.name,
                       ir::dtype_name(tensor.dtype));
  if (tensor.bytes() < 1 || tensor.bytes() > int64_t{chip.tensor_bytes_max})
    return Support::no(Remedy::split, "'{}' has {} bytes; the toy takes 1 to {}", tensor.name, tensor.bytes(),
                       chip.tensor_bytes_max);
  if (quant.per_channel())
    return Support::no(Remedy::reconvert, "'{}' is quantized per channel; the toy takes one scale", tensor.name);
  if (!quant.empty() && !(quant.scale() > 0 && quant.zero_point() >= 0 && quant.zero_point() <= 255))
    return Support::no(Remedy::reconvert, "'{}' has scale {} and zero point {}, which are invalid", tensor.name,
                       quant.scale(), quant.zero_point());
  return Support::yes();
}

}  // namespace

// The toy compares bytes, so all tensors must have the same quantization. Tensors without quantization get that of the
// others.
Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (std::ranges::find(kTaken, op.kind) == std::end(kTaken))
    return Support::no(Remedy::none, "the toy has no {}", ir::op_name(op));
  const ir::Tensor& result = graph.tensor(op.outputs[0]);
  if (const Support support = takes(chip, result); !support.ok) return support;
  for (const ir::TensorId input : op.inputs) {
    const ir::Tensor& operand = graph.tensor(input);
    if (const Support support = takes(chip, operand); !support.ok) return support;
    if (operand.shape != result.shape)
      return Support::no(Remedy::shapes, "'{}' and '{}' differ in shape; the toy does not broadcast", operand.name,
                         result.name);
    if (!operand.quant.empty() && !result.quant.empty() && operand.quant != result.quant)
      return Support::no(Remedy::same_scale, "'{}' and '{}' differ in quantization; the toy does not rescale",
                         operand.name, result.name);
  }
  return Support::yes();
}

}  // namespace skillet::npus::toy
