#include "frontend/onnx/layer_constants.h"

#include <cmath>
#include <cstring>

namespace skillet::onnx {
namespace {

bool is_row(const Value& value, int32_t columns) {
  return value.dims && !value.dims->empty() && value.dims->back() == columns;
}

}  // namespace

Result<ir::TensorId> bias(Lowering& l, size_t i, const ir::Quant& in, const ir::Quant& weights, int32_t channels) {
  const Operand* operand = l.input(i);
  if (operand == nullptr) return ir::kNoTensor;
  const Value& value = l.model().value(operand->value);
  const auto numbers_of = numbers(value);
  if (!numbers_of || (value.dtype != ir::DType::int32 && value.dtype != ir::DType::float32) ||
      std::ssize(*numbers_of) != channels || (channels > 1 && !is_row(value, channels)))
    return error(ErrorCode::unsupported, "'{}' is not a constant bias of int32 or float32, one per channel",
                 value.name);
  if (in.empty() && value.dtype == ir::DType::float32)
    return l.constant(value.dtype, {channels}, Bytes(value.data.begin(), value.data.end()));
  if (in.empty() || weights.empty()) return error(ErrorCode::unsupported, "'{}' is not a bias of floats", value.name);
  ir::Quant steps{.scales = {}, .zero_points = {}, .axis = 0};
  Bytes bytes(static_cast<size_t>(channels) * 4);
  const auto of = [](const auto& list, size_t at) { return list[list.size() == 1 ? 0 : at]; };
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const float step = in.scale() * of(weights.scales, c);
    double stored = (*numbers_of)[c];
    if (value.dtype == ir::DType::float32) stored /= step;
    if (!operand->quant.empty()) {
      if (operand->quant.scales.size() != 1 && std::ssize(operand->quant.scales) != channels)
        return error(ErrorCode::malformed, "'{}' has {} scales", value.name, operand->quant.scales.size());
      const double ratio = of(operand->quant.scales, c) / double{step};
      stored -= of(operand->quant.zero_points, c);
      if (std::abs(ratio - 1) > 1e-6) stored *= ratio;
    }
    if (std::isnan(stored))
      return error(ErrorCode::malformed, "'{}' is not a number in channel {}: a bias, or scales of 0", value.name, c);
    SK_TRY(l.check_sum(stored, step));
    const auto whole = static_cast<int32_t>(std::nearbyint(stored));
    std::memcpy(bytes.data() + c * 4, &whole, 4);
    if (c == 0 || weights.per_channel()) {
      steps.scales.push_back(step);
      steps.zero_points.push_back(0);
    }
  }
  return l.constant(ir::DType::int32, {channels}, std::move(bytes), std::move(steps));
}

Result<ir::TensorId> weights(Lowering& l, const std::vector<int32_t>& dims, const std::vector<int>& perm,
                             std::vector<int32_t> shape, int channels_at, int scales_at) {
  const Operand& operand = *l.input(1);
  SK_TRY_ASSIGN(Bytes bytes, l.stored(operand, dims, perm));
  ir::Quant quant = l.quant(operand);
  if (quant.per_channel()) {
    if (quant.axis != scales_at)
      return error(ErrorCode::unsupported, "its weights have scales along dimension {}, not {}", quant.axis, scales_at);
    quant.axis = channels_at;
    if (std::ssize(quant.scales) != shape[static_cast<size_t>(channels_at)])
      return error(ErrorCode::malformed, "its weights have {} scales", quant.scales.size());
  }
  const ir::DType dtype = quant.empty() ? l.model().value(operand.value).dtype : l.type();
  return l.constant(dtype, std::move(shape), std::move(bytes), std::move(quant));
}

}  // namespace skillet::onnx
