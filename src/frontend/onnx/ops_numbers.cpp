// Operations element by element, and over an axis.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "frontend/onnx/lowering.h"

namespace skillet::onnx {
namespace {

using ir::OpKind;
using ir::TensorId;

constexpr int32_t kMostChannels = 1 << 16;

// Applies one constant for each channel, or one for all, as a depthwise 1x1 filter: chips multiply and add constants in
// this form. Sums have steps 127 times finer than the image's, so that they are rounded only once.
Result<bool> by_filter(Lowering& l, OpKind kind, size_t image, size_t numbers_at) {
  const Operand& given = *l.input(numbers_at);
  if (!l.model().value(given.value).is_constant || given.quant.empty()) return false;
  SK_TRY_ASSIGN(const auto dims, l.input_dims(image));
  SK_TRY_ASSIGN(auto shape, l.input_dims(numbers_at));
  if (dims.size() != 4 || shape.size() > 4 || l.unit().outputs.size() != 1) return false;
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  const int32_t channels = dims[1];
  if (channels > kMostChannels || (shape[1] != 1 && shape[1] != channels) || shape[0] * shape[2] * shape[3] != 1)
    return false;
  SK_TRY_ASSIGN(Bytes bytes, l.stored(given, shape, {0, 2, 3, 1}));
  bytes.resize(static_cast<size_t>(channels), bytes[0]);
  ir::Quant quant = l.quant(given);
  SK_TRY_ASSIGN(const TensorId from, l.read(image, Layout::channels_last));
  TensorId plus = ir::kNoTensor;
  if (kind != OpKind::mul) {
    const int zero = l.type() == ir::DType::int8 ? 0 : 128;
    const double step = l.graph.tensor(from).quant.scale() / 127.0, sign = kind == OpKind::sub ? -1 : 1;
    std::vector<int32_t> sums;
    for (uint8_t& byte : bytes) {
      const int stored = l.type() == ir::DType::int8 ? static_cast<int8_t>(byte) : byte;
      const double sum = sign * quant.scale() * (stored - quant.zero_point()) / step;
      SK_TRY(l.check_sum(sum, step));
      sums.push_back(static_cast<int32_t>(std::nearbyint(sum)));
      byte = static_cast<uint8_t>(zero + 127);
    }
    quant = {.scales = {1.0F / 127}, .zero_points = {zero}};
    plus = l.ints(sums);
    l.graph.tensor(plus).quant = {.scales = {static_cast<float>(step)}, .zero_points = {0}};
  }
  const TensorId by = l.constant(l.type(), {1, 1, 1, channels}, std::move(bytes), std::move(quant));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, Layout::channels_last));
  l.emit(OpKind::depthwise_conv_2d, ir::ConvAttrs{.padding = ir::Padding::valid, .activation = l.unit().activation},
         {from, by, plus}, to);
  return true;
}

// Images of the same rank have channels last. With different ranks the host's order decides the broadcasting.
Result<void> binary(Lowering& l, OpKind kind, bool has_activation) {
  if (l.unit().inputs.size() != 2) return error(ErrorCode::unsupported, "it has {} inputs", l.unit().inputs.size());
  SK_TRY_ASSIGN(const auto a, l.input_dims(0));
  SK_TRY_ASSIGN(const auto b, l.input_dims(1));
  const size_t rank = std::max(a.size(), b.size());
  bool fits = true;
  for (size_t i = 0; i < 2; ++i)
    fits &= l.model().value(l.input(i)->value).is_constant || (i == 0 ? a : b).size() == rank;
  const Layout layout = fits ? l.common_layout(rank) : Layout::plain;
  SK_TRY_ASSIGN(const TensorId left, l.read(0, layout, rank));
  SK_TRY_ASSIGN(const TensorId right, l.read(1, layout, rank));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  if (has_activation) {
    l.emit(kind, ir::ActivationAttrs{.activation = l.unit().activation}, {left, right}, to);
    return {};
  }
  // TensorFlow Lite's kernels do not rescale here.
  const ir::Quant quant = l.graph.tensor(left).quant;
  if (l.graph.tensor(right).quant != quant) return error(ErrorCode::unsupported, "its inputs have different scales");
  const TensorId same = l.before_requantize(to, quant);
  l.emit(kind, ir::NoAttrs{}, {left, right}, same);
  l.requantize(same, to);
  return {};
}
Result<void> with_numbers(Lowering& l, OpKind kind) {
  for (const size_t numbers_at : {size_t{1}, size_t{0}}) {
    if (l.input(0) == nullptr || l.input(1) == nullptr || (kind == OpKind::sub && numbers_at == 0)) continue;
    SK_TRY_ASSIGN(const bool done, by_filter(l, kind, 1 - numbers_at, numbers_at));
    if (done) return {};
  }
  return binary(l, kind, true);
}

Result<void> add(Lowering& l) { return with_numbers(l, OpKind::add); }
Result<void> sub(Lowering& l) { return with_numbers(l, OpKind::sub); }
Result<void> mul(Lowering& l) { return with_numbers(l, OpKind::mul); }
// Division by 0: the CPU kernels of quantized values return 0, ONNX the end of the range.
Result<void> div(Lowering& l) {
  const Operand* const by = l.input(1);
  if (by != nullptr && !by->quant.empty()) {
    const auto stored = numbers(l.model().value(by->value));
    if (!stored || std::ranges::count(*stored, by->quant.zero_point()) != 0)
      return error(ErrorCode::unsupported, "it may divide by 0");
  }
  return binary(l, OpKind::div, true);
}
Result<void> max(Lowering& l) { return binary(l, OpKind::maximum, false); }
Result<void> min(Lowering& l) { return binary(l, OpKind::minimum, false); }

// A table of all 256 results, computed as the host does: in float, halves rounded to even; NaN becomes the lowest byte.
Result<void> table(Lowering& l, const std::function<double(double)>& function) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const Layout layout = l.common_layout(dims.size());
  SK_TRY_ASSIGN(const TensorId from, l.read(0, layout));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  if (l.graph.tensor(from).quant.empty() || l.graph.tensor(to).quant.empty())
    return error(ErrorCode::unsupported, "its type is {}", ir::dtype_name(l.graph.tensor(from).dtype));
  const ir::Quant in = l.graph.tensor(from).quant, out = l.graph.tensor(to).quant;
  Bytes bytes(256);
  for (int value = l.least(); value < l.least() + 256; ++value) {
    const float real = in.scale() * static_cast<float>(value - in.zero_point());
    const double stored = std::nearbyint(static_cast<float>(function(real)) / out.scale()) + out.zero_point();
    const double kept = std::isnan(stored) ? l.least() : std::clamp<double>(stored, l.least(), l.least() + 255);
    bytes[static_cast<uint8_t>(value)] = static_cast<uint8_t>(static_cast<int>(kept));
  }
  l.emit(OpKind::byte_table, ir::NoAttrs{}, {from, l.constant(l.type(), {256}, std::move(bytes))}, to);
  return {};
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double hard_sigmoid_of(double x, double alpha, double beta) { return std::clamp(alpha * x + beta, 0.0, 1.0); }

template <double (*Function)(double)>
Result<void> table_of(Lowering& l) {
  return table(l, Function);
}
double negative_of(double x) { return -x; }
double reciprocal_of(double x) { return 1 / x; }
double relu_of(double x) { return std::max(x, 0.0); }
double sign_of(double x) { return (x > 0) - (x < 0); }
double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double softsign_of(double x) { return x / (1 + std::abs(x)); }
double mish_of(double x) { return x * std::tanh(softplus_of(x)); }
double hard_swish_of(double x) { return x * hard_sigmoid_of(x, 1.0 / 6, 0.5); }

Result<void> gelu(Lowering& l) {
  if (string_of(l.node(), "approximate", "none") != "none")
    return error(ErrorCode::unsupported, "approximate is not none");
  return table(l, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); });
}
Result<void> hard_sigmoid(Lowering& l) {
  const double alpha = float_of(l.node(), "alpha", 0.2F), beta = float_of(l.node(), "beta", 0.5F);
  return table(l, [=](double x) { return hard_sigmoid_of(x, alpha, beta); });
}
Result<void> leaky_relu(Lowering& l) {
  const double alpha = float_of(l.node(), "alpha", 0.01F);
  return table(l, [=](double x) { return x < 0 ? alpha * x : x; });
}
Result<void> elu(Lowering& l) {
  const double alpha = float_of(l.node(), "alpha", 1.0F);
  return table(l, [=](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}
Result<void> celu(Lowering& l) {
  const double alpha = float_of(l.node(), "alpha", 1.0F);
  return table(l, [=](double x) { return std::max(x, 0.0) + std::min(0.0, alpha * std::expm1(x / alpha)); });
}
Result<void> selu(Lowering& l) {
  const double alpha = float_of(l.node(), "alpha", 1.67326319F), gamma = float_of(l.node(), "gamma", 1.05070102F);
  return table(l, [=](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}
Result<void> thresholded_relu(Lowering& l) {
  const double alpha = float_of(l.node(), "alpha", 1.0F);
  return table(l, [=](double x) { return x > alpha ? x : 0; });
}
Result<void> shrink(Lowering& l) {
  const double lambda = float_of(l.node(), "lambd", 0.5F), bias = float_of(l.node(), "bias", 0.0F);
  return table(l, [=](double x) { return x < -lambda ? x + bias : x > lambda ? x - bias : 0; });
}
Result<void> swish(Lowering& l) {
  const double alpha = float_of(l.node(), "alpha", 1.0F);
  return table(l, [=](double x) { return x * sigmoid_of(alpha * x); });
}
Result<void> clip(Lowering& l) {
  double low = float_of(l.node(), "min", -INFINITY), high = float_of(l.node(), "max", INFINITY);
  for (size_t i = 1; i <= 2; ++i) {
    const Operand* limit = l.input(i);
    if (limit == nullptr) continue;
    const auto read = numbers(l.model().value(limit->value));
    if (!read || read->size() != 1) return error(ErrorCode::unsupported, "its limits are not constants");
    const double real =
        limit->quant.empty() ? read->front() : (read->front() - limit->quant.zero_point()) * limit->quant.scale();
    (i == 1 ? low : high) = real;
  }
  return table(l, [=](double x) { return std::min(std::max(x, low), high); });
}

// Slopes are constants of 8 bits. The kernel needs them without the batch dimension.
Result<void> prelu(Lowering& l) {
  if (l.unit().inputs.size() != 2) return error(ErrorCode::unsupported, "it has {} inputs", l.unit().inputs.size());
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const Layout layout = l.common_layout(dims.size());
  SK_TRY_ASSIGN(const TensorId from, l.read(0, layout));
  SK_TRY_ASSIGN(const TensorId slope, l.read(1, layout, dims.size()));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  ir::Tensor& alpha = l.graph.tensor(slope);
  for (const TensorId id : {from, slope, to}) {
    if (l.graph.tensor(id).quant.empty())
      return error(ErrorCode::unsupported, "its type is {}", ir::dtype_name(l.graph.tensor(id).dtype));
  }
  if (!alpha.is_constant() || alpha.shape.dims.empty() || alpha.shape.dims[0] != 1)
    return error(ErrorCode::unsupported, "its slopes are not constants for all images");
  alpha.shape.dims.erase(alpha.shape.dims.begin());
  l.emit(OpKind::prelu, ir::NoAttrs{}, {from, slope}, to);
  return {};
}

// Over the last dimension of the graph: the host's channels if the layout has channels last.
Result<void> softmax(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const auto rank = static_cast<int64_t>(dims.size());
  const bool is_plain = l.node().op == "Softmax";  // QLinearSoftmax has an attribute for the version
  const bool is_old = (is_plain ? l.node().since : int_of(l.node(), "opset", 13)) < 13;
  int64_t axis = int_of(l.node(), "axis", is_old ? 1 : -1);
  if (axis < 0) axis += rank;
  const bool channels = rank >= 3 && axis == 1 && !is_old;
  if (rank == 0 || (!channels && axis != rank - 1))
    return error(ErrorCode::unsupported, "it is over dimension {} of {}, not the last or the channels", axis, rank);
  const Layout layout = channels ? Layout::channels_last : Layout::plain;
  SK_TRY_ASSIGN(const TensorId from, l.read(0, layout));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  const ir::Quant shares{.scales = {1.0F / 256}, .zero_points = {l.least()}};
  return l.emit_rounded(OpKind::softmax, ir::SoftmaxAttrs{}, {from}, shares, to);
}

constexpr std::array kRows = {
    LowerRow{"Add", add, true},
    LowerRow{"Sub", sub, true},
    LowerRow{"Mul", mul, true},
    LowerRow{"Div", div, true},
    LowerRow{"Max", max},
    LowerRow{"Min", min},
    LowerRow{"Abs", table_of<std::abs>},
    LowerRow{"Acos", table_of<std::acos>},
    LowerRow{"Acosh", table_of<std::acosh>},
    LowerRow{"Asin", table_of<std::asin>},
    LowerRow{"Asinh", table_of<std::asinh>},
    LowerRow{"Atan", table_of<std::atan>},
    LowerRow{"Atanh", table_of<std::atanh>},
    LowerRow{"Ceil", table_of<std::ceil>},
    LowerRow{"Cos", table_of<std::cos>},
    LowerRow{"Cosh", table_of<std::cosh>},
    LowerRow{"Erf", table_of<std::erf>},
    LowerRow{"Exp", table_of<std::exp>},
    LowerRow{"Floor", table_of<std::floor>},
    LowerRow{"HardSwish", table_of<hard_swish_of>},
    LowerRow{"Log", table_of<std::log>},
    LowerRow{"Mish", table_of<mish_of>},
    LowerRow{"Neg", table_of<negative_of>},
    LowerRow{"Reciprocal", table_of<reciprocal_of>},
    LowerRow{"Relu", table_of<relu_of>},
    LowerRow{"Round", table_of<std::nearbyint>},
    LowerRow{"Sigmoid", table_of<sigmoid_of>},
    LowerRow{"Sign", table_of<sign_of>},
    LowerRow{"Sin", table_of<std::sin>},
    LowerRow{"Sinh", table_of<std::sinh>},
    LowerRow{"Softplus", table_of<softplus_of>},
    LowerRow{"Softsign", table_of<softsign_of>},
    LowerRow{"Sqrt", table_of<std::sqrt>},
    LowerRow{"Tan", table_of<std::tan>},
    LowerRow{"Tanh", table_of<std::tanh>},
    LowerRow{"Celu", celu},
    LowerRow{"Clip", clip},
    LowerRow{"Elu", elu},
    LowerRow{"Gelu", gelu},
    LowerRow{"HardSigmoid", hard_sigmoid},
    LowerRow{"LeakyRelu", leaky_relu},
    LowerRow{"PRelu", prelu},
    LowerRow{"Selu", selu},
    LowerRow{"Shrink", shrink},
    LowerRow{"Swish", swish},
    LowerRow{"ThresholdedRelu", thresholded_relu},
    LowerRow{"Softmax", softmax},
};

}  // namespace

std::span<const LowerRow> number_ops() { return kRows; }

}  // namespace skillet::onnx
