#include "npus/vivante/compiler/numerics.h"

#include <algorithm>
#include <cmath>

namespace skillet::npus::vivante {

bool is_usable(const ir::Quant& quant, ir::DType dtype) {
  const int32_t lowest = dtype == ir::DType::int8 ? -128 : 0;
  const auto usable = [](float s) { return std::isnormal(s) && s > 0; };
  const auto within = [&](int32_t z) { return z >= lowest && z <= lowest + 255; };
  return std::all_of(quant.scales.begin(), quant.scales.end(), usable) &&
         std::all_of(quant.zero_points.begin(), quant.zero_points.end(), within);
}

uint8_t unsigned_zero_point(const ir::Tensor& tensor) {
  return static_cast<uint8_t>(tensor.quant.zero_point() + (tensor.dtype == ir::DType::int8 ? 128 : 0));
}

float conv_scale(const ir::Graph& graph, ir::OpId id, float filter_scale) {
  const ir::Op& op = graph.op(id);
  const float product = graph.tensor(op.input(0)).quant.scale() * filter_scale;
  return product / graph.tensor(op.outputs[0]).quant.scale();
}

bool is_nn_scale(const hw::ChipRow& chip, float scale) {
  const int exponent = std::isnormal(scale) && scale > 0 ? std::ilogb(scale) + 127 : -1;
  const int shift = hw::generation_of(chip).shift_origin() - exponent;
  return exponent > 0 && shift >= 0 && shift <= 127;
}

bool is_tp_scale(float scale) { return scale >= 0x1p-63F && scale < 0x1p64F; }

int64_t largest_rescaled(float scale) {
  int exponent = 0;
  std::frexp(scale, &exponent);
  constexpr int64_t kLargest = INT32_MAX - 255;  // the zero point is also added in 32 bits
  return kLargest >> std::clamp(exponent, 0, 31);
}

namespace {

// Sums of all positive and of all negative (weight - zero point) of one output channel.
struct Reach {
  int64_t up = 0, down = 0;
};

std::vector<Reach> reaches(const ir::Tensor& filter, bool depthwise, int64_t channels) {
  std::vector<Reach> reaches(static_cast<size_t>(channels));
  const int32_t zero_point = unsigned_zero_point(filter);
  const uint8_t flip = xor_byte(filter.dtype);
  const auto per_channel = static_cast<size_t>(filter.shape.elems() / channels);
  for (size_t i = 0; i < filter.data.size(); ++i) {
    // The channel is the innermost dimension of a depthwise filter, else the outermost.
    Reach& reach = reaches[depthwise ? i % static_cast<size_t>(channels) : i / per_channel];
    const int32_t weight = (filter.data[i] ^ flip) - zero_point;
    (weight > 0 ? reach.up : reach.down) += weight;
  }
  return reaches;
}

}  // namespace

bool sums_within(const ir::Graph& graph, ir::OpId id, int64_t limit) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& filter = graph.tensor(op.input(1));
  const int64_t channels = graph.tensor(op.outputs[0]).shape.back(0);
  std::vector<int32_t> biases(static_cast<size_t>(channels), 0);
  if (op.input(2) != ir::kNoTensor) biases = graph.tensor(op.input(2)).values<int32_t>();
  int64_t largest_bias = 0;
  for (const int32_t bias : biases) largest_bias = std::max(largest_bias, std::abs(int64_t{bias}));
  // Most filters are far from the limit, so their weights need no check.
  if (largest_bias + filter.shape.elems() / channels * (255 * 255) <= limit) return true;
  const int64_t below = unsigned_zero_point(graph.tensor(op.input(0))), above = 255 - below;
  const auto sums = reaches(filter, op.kind == ir::OpKind::depthwise_conv_2d, channels);
  for (size_t c = 0; c < sums.size(); ++c) {
    const int64_t most = biases[c] + sums[c].up * above - sums[c].down * below;
    const int64_t least = biases[c] - sums[c].up * below + sums[c].down * above;
    if (most > limit || least < -limit) return false;
  }
  return true;
}

namespace {

// The recorded forms, each with its own rounding. `ratio`: of the operands' scales, negative for subtractions.
AdditionWeights planes_form(float ratio, float& step) {
  step = static_cast<float>(std::max(double{ratio}, 1.0) / 255.0);
  return {.first = static_cast<int32_t>(std::min(std::round(1.0 / step), 255.0)),
          .second = static_cast<int32_t>(std::min(std::round(double{ratio} / step), 255.0))};
}
AdditionWeights chunks_form(float ratio, float& step) {
  const float low = std::min(ratio, 1.0F), high = std::max(ratio, 1.0F);
  step = (high - std::min(low, 0.0F)) / 255.0F;
  const float zero_point = std::clamp(std::round(-low / step), 0.0F, 255.0F);
  return {.first = static_cast<int32_t>(std::min(std::round(1.0F / step), 255.0F - zero_point)),
          .second = static_cast<int32_t>(ratio >= 0 ? std::min(std::round(ratio / step), 255.0F) : -zero_point),
          .zero_point = static_cast<uint8_t>(zero_point)};
}

}  // namespace

AdditionWeights addition_weights(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op,
                                 SignedBytes signed_bytes) {
  const ir::Tensor &a = graph.tensor(op.input(0)), &b = graph.tensor(op.input(1));
  const float s0 = a.quant.scale(), s1 = b.quant.scale();
  const int32_t zp0 = unsigned_zero_point(a), zp1 = unsigned_zero_point(b);
  const float ratio = op.kind == ir::OpKind::sub ? -(s1 / s0) : s1 / s0;
  const bool chunks = hw::generation_of(chip).chunked_additions;
  const auto read = [&](const ir::Tensor& t, int32_t zp) {
    return signed_bytes == SignedBytes::raised ? zp : zp ^ xor_byte(t.dtype);
  };
  const int32_t read0 = read(a, zp0), read1 = read(b, zp1);
  float step = 1;
  AdditionWeights w = chunks ? chunks_form(ratio, step) : planes_form(ratio, step);
  const double correction = chunks ? static_cast<double>(w.second) * (read0 - read1)
                                   : std::round((read0 - read1) * double{s1} / (double{step} * s0));
  w.bias = static_cast<int32_t>(correction) - w.second * read0 - w.first * zp0;
  w.scale = s0 * step / graph.tensor(op.outputs[0]).quant.scale();
  return w;
}

double addition_error(const ir::Graph& graph, const ir::Op& op, const AdditionWeights& w) {
  const ir::Tensor &a = graph.tensor(op.input(0)), &b = graph.tensor(op.input(1)), &out = graph.tensor(op.outputs[0]);
  const double s0 = a.quant.scale(), s1 = b.quant.scale(), larger = std::max(s0, s1);
  const int32_t zp0 = unsigned_zero_point(a), zp1 = unsigned_zero_point(b);
  const bool subtract = op.kind == ir::OpKind::sub;
  // The real range of the 255 steps of a weight.
  const double span = subtract ? s0 + s1 : larger;
  // The result is linear in both operands, so the ends of their ranges have the largest error.
  double worst = 0;
  for (const int q0 : {0, 255}) {
    for (const int q1 : {0, 255}) {
      const double right = 255 / span * (s0 * (q0 - zp0) + (subtract ? -s1 : s1) * (q1 - zp1));
      worst = std::max(worst, std::abs(w.first * q0 + w.second * q1 + w.bias - right));
    }
  }
  const double cpu = s0 == s1 ? 0 : larger / out.quant.scale() * 0x1p-19;
  return worst / 255 * span / out.quant.scale() + cpu;
}

}  // namespace skillet::npus::vivante
