#include "graph/ref/kernel.h"

#include <limits>

#include "simd/vector_math.h"

namespace skillet::ref {

Error Context::refusal(std::string text) const {
  return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(graph_, id_), text);
}

Result<std::vector<int64_t>> Context::constant_ints(size_t i) const {
  const ir::Tensor& tensor = input(i);
  if (!tensor.is_constant()) return unsupported("{} is not constant", ir::describe_tensor(graph_, op().inputs[i]));
  if (tensor.dtype == ir::DType::int64) return tensor.values<int64_t>();
  if (tensor.dtype != ir::DType::int32) {
    return unsupported("{} is not int32 or int64", ir::describe_tensor(graph_, op().inputs[i]));
  }
  const auto values = tensor.values<int32_t>();
  return std::vector<int64_t>(values.begin(), values.end());
}

Result<int64_t> Context::constant_int(size_t i) const {
  SK_TRY_ASSIGN(const auto values, constant_ints(i));
  if (values.size() != 1) return unsupported("input {} has {} values, expected 1", i, values.size());
  return values[0];
}

Result<size_t> Context::elem_bytes(const ir::Tensor& tensor) const {
  const int bytes = ir::dtype_bytes(tensor.dtype);
  if (bytes == 0) return unsupported("type {}", ir::dtype_name(tensor.dtype));
  return static_cast<size_t>(bytes);
}

Result<void> Context::need_quantized(size_t inputs) const {
  for (size_t i = 0; i < inputs; ++i) SK_TRY(need_quantized(input(i)));
  return need_quantized(output());
}

Result<void> Context::need_int16(size_t inputs) const {
  for (size_t i = 0; i < inputs; ++i) SK_TRY(need_int16(input(i)));
  return need_int16(output());
}

Result<void> Context::need_quantized(const ir::Tensor& tensor) const {
  if (ir::is_8bit(tensor.dtype) && !tensor.quant.empty() && !tensor.quant.per_channel()) return {};
  return unsupported("tensor '{}' is {}{}, expected int8 or uint8 with one scale", tensor.name,
                     ir::dtype_name(tensor.dtype), tensor.quant.empty() ? " without quantization" : "");
}

Result<void> Context::need_int16(const ir::Tensor& tensor) const {
  if (tensor.dtype != ir::DType::int16 || tensor.quant.empty() || tensor.quant.per_channel()) {
    return unsupported("tensor '{}' is {}{}, expected int16 with one scale", tensor.name, ir::dtype_name(tensor.dtype),
                       tensor.quant.empty() ? " without quantization" : "");
  }
  if (tensor.quant.zero_point() == 0) return {};
  return unsupported("tensor '{}' is int16 with zero point {}, expected 0", tensor.name, tensor.quant.zero_point());
}

KernelPtr look_up_kernel(const Context& c, const ByteTable& table) {
  return make_kernel([table, in = c.input_index(0), out = c.output_index()](Tensors t) {
    vector_math::look_up(t[in].data(), t[in].size(), table, t[out].data());
  });
}

Range type_range(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::int8: return {INT8_MIN, INT8_MAX};
    case ir::DType::int16: return {INT16_MIN, INT16_MAX};
    default: return {0, UINT8_MAX};
  }
}

std::optional<Range> quantized_range(ir::Activation activation, const ir::Tensor& tensor) {
  const Range limits = type_range(tensor.dtype);
  const auto quantize = [&](float value) {
    return std::clamp(round_to_int(value / tensor.quant.scale()) + tensor.quant.zero_point(), limits.min, limits.max);
  };
  switch (activation) {
    case ir::Activation::none: return limits;
    case ir::Activation::relu: return Range{quantize(0), limits.max};
    case ir::Activation::relu6: return Range{quantize(0), quantize(6)};
    case ir::Activation::relu_n1_to_1: return Range{quantize(-1), quantize(1)};
    default: return std::nullopt;
  }
}

Result<Range> activation_range(const Context& context, ir::Activation activation, const ir::Tensor& tensor) {
  const auto range = quantized_range(activation, tensor);
  if (!range) return context.unsupported("fused activation {}", ir::activation_name(activation));
  return *range;
}

Result<FloatRange> float_activation_range(const Context& context, ir::Activation activation) {
  constexpr float kLowest = std::numeric_limits<float>::lowest(), kMax = std::numeric_limits<float>::max();
  switch (activation) {
    case ir::Activation::none: return FloatRange{kLowest, kMax};
    case ir::Activation::relu: return FloatRange{0, kMax};
    case ir::Activation::relu6: return FloatRange{0, 6};
    case ir::Activation::relu_n1_to_1: return FloatRange{-1, 1};
    default: return context.unsupported("fused activation {}", ir::activation_name(activation));
  }
}

int32_t padding_before(ir::Padding padding, int32_t input, int32_t output, int32_t kernel, int32_t stride,
                       int32_t dilation) {
  if (padding == ir::Padding::valid) return 0;
  const int64_t covered = int64_t{output - 1} * stride + int64_t{kernel - 1} * dilation + 1;
  return static_cast<int32_t>(std::max<int64_t>(covered - input, 0) / 2);
}

}  // namespace skillet::ref
