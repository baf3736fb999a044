#include "graph/passes/lower/average.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace skillet::passes {
namespace {

constexpr int64_t kPixelsMax = 1 << 14;  // of a window

// True if the zero point is in the range of bytes, so that sums do not overflow.
bool has_byte_zero(const ir::Tensor& tensor) {
  const int32_t lowest = tensor.dtype == ir::DType::int8 ? -128 : 0, zero = tensor.quant.zero_point();
  return zero >= lowest && zero <= lowest + 255;
}

bool has_no_padding(const ir::PoolAttrs& attrs, const ir::Shape& in) {
  if (attrs.rows) return false;
  if (attrs.padding == ir::Padding::valid) return true;
  const SamePads y = same_pads(in[1], attrs.filter_h, attrs.stride_h, 1);
  const SamePads x = same_pads(in[2], attrs.filter_w, attrs.stride_w, 1);
  return y.before + y.after + x.before + x.after == 0;
}

std::optional<Average> pool_of(const Rewriter& rewriter, const ir::Op& op) {
  const auto& attrs = op.as<ir::PoolAttrs>();
  if (attrs.filter_h > kPixelsMax || attrs.filter_w > kPixelsMax ||
      !has_no_padding(attrs, rewriter.tensor(op.inputs[0]).shape))
    return std::nullopt;
  Average out{.from = op.inputs[0], .to = op.outputs[0], .rows = attrs.filter_h, .columns = attrs.filter_w};
  out.attrs = {.padding = attrs.padding, .stride_h = attrs.stride_h, .stride_w = attrs.stride_w};
  out.attrs.activation = attrs.activation;
  return out;
}

// Axes in order, from 0; empty if they are not known.
std::vector<int32_t> reduced_axes(const Rewriter& rewriter, const ir::Op& op) {
  if (op.kind != ir::OpKind::mean && op.kind != ir::OpKind::sum) return {};
  const ir::Tensor& axes = rewriter.tensor(op.inputs[1]);
  if (!axes.is_constant() || axes.dtype != ir::DType::int32) return {};
  auto values = axes.values<int32_t>();
  for (int32_t& axis : values) axis += axis < 0 ? rewriter.tensor(op.inputs[0]).shape.rank() : 0;
  std::ranges::sort(values);
  return values;
}

Average reduced(const ir::Op& op, int32_t rows, int32_t columns) {
  Average out{.from = op.inputs[0], .to = op.outputs[0], .rows = rows, .columns = columns};
  out.attrs.padding = ir::Padding::valid;
  out.kind = op.kind;
  return out;
}

// MEAN or SUM over rows, columns, or both.
std::optional<Average> mean_of(const Rewriter& rewriter, const ir::Op& op) {
  const std::vector<int32_t> axes = reduced_axes(rewriter, op);
  using Axes = std::vector<int32_t>;
  const bool is_of_pixels = axes == Axes{1} || axes == Axes{2} || axes == Axes{1, 2};
  if (!is_of_pixels) return std::nullopt;
  const ir::Shape& from = rewriter.tensor(op.inputs[0]).shape;
  if (from.rank() != 4) return std::nullopt;
  return reduced(op, axes.front() == 1 ? from[1] : 1, axes.back() == 2 ? from[2] : 1);
}

bool is_of_bytes(const Rewriter& rewriter, const Average& average) {
  const ir::Tensor &from = rewriter.tensor(average.from), &to = rewriter.tensor(average.to);
  return average.pixels() >= 1 && average.pixels() <= kPixelsMax && is_computed_byte(from) && is_computed_byte(to) &&
         from.dtype == to.dtype && has_byte_zero(from) && has_byte_zero(to);
}

// A larger weight has a finer scale; a bias of half a weight moves ties between two steps.
constexpr std::array kWeights = {Weights{1, 0},    Weights{64, 0},   Weights{64, 32},
                                 Weights{64, -32}, Weights{127, 63}, Weights{127, -63}};

bool is_exact(const Weights& weights, const Average& average, const ir::Tensor& from, const ir::Tensor& to) {
  const AverageRounding wanted(average, from, to);
  const auto by = quantize_multiplier(conv_multiplier(from, average.scale(weights), to));
  const int64_t lowest = from.dtype == ir::DType::int8 ? -128 : 0, pixels = average.pixels();
  const int64_t zero = pixels * from.quant.zero_point();
  if (by.shift > 0) return false;  // larger sums would overflow 32 bits
  for (int64_t sum = pixels * lowest; sum <= pixels * (lowest + 255); ++sum) {
    const auto moved = static_cast<int32_t>(weights.weight * (sum - zero) + weights.bias);
    const int64_t got = multiply_by_quantized_multiplier(moved, by) + int64_t{to.quant.zero_point()};
    if (std::clamp(got, lowest, lowest + 255) != std::clamp(wanted(sum), lowest, lowest + 255)) return false;
  }
  return true;
}

// Both kernels round twice: to a fraction 2^-shift of a step, then to a step. This equals one rounding that starts half
// of that fraction earlier. The bias corrects the difference of the two shifts.
std::optional<Weights> mean_weights(const Average& average, const ir::Tensor& from, const ir::Tensor& to) {
  const int32_t wanted = AverageRounding(average, from, to).shift();
  for (const int32_t weight : {64, 127, 96, 112, 80}) {
    Weights one{.weight = weight};
    const double multiplier = conv_multiplier(from, average.scale(one), to);
    const int32_t shift = -quantize_multiplier(multiplier).shift;
    const double bias = (std::ldexp(0.5, -wanted) - std::ldexp(0.5, -shift)) / multiplier;
    if (!(std::abs(bias) < 1 << 20)) continue;
    one.bias = static_cast<int32_t>(std::lround(bias));
    if (is_exact(one, average, from, to)) return one;
  }
  return std::nullopt;
}

}  // namespace

AverageRounding::AverageRounding(const Average& average, const ir::Tensor& from, const ir::Tensor& to)
    : pixels_(average.pixels()), zero_(from.quant.zero_point()), out_zero_(to.quant.zero_point()) {
  if (average.kind == ir::OpKind::sum) {
    sum_scale_ = from.quant.scale() / to.quant.scale();
    sum_zero_ = static_cast<float>(-zero_) * sum_scale_ * static_cast<float>(pixels_);
  }
  if (average.kind != ir::OpKind::mean) return;
  const auto ratio =
      quantize_multiplier(static_cast<double>(from.quant.scale()) / static_cast<double>(to.quant.scale()));
  mean_ = divide_multiplier(ratio, pixels_);
}

int64_t AverageRounding::operator()(int64_t sum) const {
  if (mean_)
    return multiply_by_quantized_multiplier(static_cast<int32_t>(sum - pixels_ * zero_), *mean_) + int64_t{out_zero_};
  if (sum_scale_ != 0)
    return static_cast<int64_t>(std::round(static_cast<float>(sum) * sum_scale_ + sum_zero_)) + out_zero_;
  const int64_t half = sum > 0 ? pixels_ / 2 : -(pixels_ / 2);
  return (sum + half) / pixels_;
}

float Average::scale(const Weights& weights) const {
  const double whole = kind == ir::OpKind::sum ? 1.0 : static_cast<double>(pixels());
  auto out = static_cast<float>(1.0 / (static_cast<double>(weights.weight) * whole));
  for (int32_t i = 0; i < std::abs(weights.ulps); ++i) out = std::nextafter(out, weights.ulps < 0 ? 0.0F : 1.0F);
  return out;
}

std::optional<Average> average_of(const Rewriter& rewriter, const ir::Op& op) {
  const std::optional<Average> out =
      op.kind == ir::OpKind::average_pool_2d ? pool_of(rewriter, op) : mean_of(rewriter, op);
  if (!out || rewriter.tensor(out->from).shape.rank() != 4 || !is_of_bytes(rewriter, *out)) return std::nullopt;
  return out;
}

std::optional<Average> average_of_channels(const Rewriter& rewriter, const ir::Op& op) {
  const std::vector<int32_t> axes = reduced_axes(rewriter, op);
  if (axes.size() != 1) return std::nullopt;
  const ir::Shape& from = rewriter.tensor(op.inputs[0]).shape;
  if (from.rank() < 2 || axes[0] != from.rank() - 1 || from.elems() < 1) return std::nullopt;
  const Average out = reduced(op, 1, from[axes[0]]);
  return is_of_bytes(rewriter, out) ? std::optional(out) : std::nullopt;
}

std::optional<Weights> exact_weights(const Average& average, const ir::Tensor& from, const ir::Tensor& to) {
  constexpr std::array kUlps = {0, 1, -1, 2, -2};
  for (const int32_t ulps : kUlps) {
    for (Weights weights : kWeights) {
      weights.ulps = ulps;
      if (is_exact(weights, average, from, to)) return weights;
    }
  }
  return average.kind == ir::OpKind::mean ? mean_weights(average, from, to) : std::nullopt;
}

namespace {

// Checks the average of every possible sum.
bool is_within_a_step(const Weights& weights, const Average& average, const ir::Tensor& from, const ir::Tensor& to) {
  const AverageRounding wanted(average, from, to);
  const double multiplier = conv_multiplier(from, average.scale(weights), to);
  const int64_t lowest = from.dtype == ir::DType::int8 ? -128 : 0, pixels = average.pixels();
  const auto low = static_cast<double>(lowest), high = low + 255;
  if (!std::isnormal(multiplier) || multiplier >= 1) return false;
  for (int64_t sum = pixels * lowest; sum <= pixels * (lowest + 255); ++sum) {
    const auto moved = static_cast<double>(weights.weight * (sum - pixels * from.quant.zero_point()));
    const double real = std::clamp(moved * multiplier + to.quant.zero_point(), low, high);
    if (!rounds_within_a_step(real, static_cast<double>(std::clamp(wanted(sum), lowest, lowest + 255)))) return false;
  }
  return true;
}

}  // namespace

std::optional<Weights> weights_of(const Rewriter& rewriter, const Average& average) {
  const ir::Tensor &from = rewriter.tensor(average.from), &to = rewriter.tensor(average.to);
  if (auto exact = exact_weights(average, from, to)) return exact;
  const Weights close{.weight = 64, .off = 1};
  if (!rewriter.may_be_off() || !is_within_a_step(close, average, from, to)) return std::nullopt;
  return close;
}

void add_weights(Rewriter& rewriter, const Average& average, const Weights& weights, ir::Shape filter, int32_t outputs,
                 ir::Op& op) {
  Bytes taps(static_cast<size_t>(filter.elems()), static_cast<uint8_t>(weights.weight));
  add_taps(rewriter, average, weights, std::move(filter), std::move(taps), outputs, op);
}

void add_taps(Rewriter& rewriter, const Average& average, const Weights& weights, ir::Shape filter, Bytes taps,
              int32_t outputs, ir::Op& op) {
  const ir::Tensor from = rewriter.tensor(average.from), to = rewriter.tensor(average.to);
  const float scale = average.scale(weights);
  op.inputs.push_back(
      rewriter.add_constant(to.name + "/ones", from.dtype, std::move(filter), std::move(taps), {{scale}, {0}, 0}));
  op.inputs.push_back(rewriter.add_ints(to.name + "/half", std::vector(static_cast<size_t>(outputs), weights.bias), {},
                                        {{from.quant.scale() * scale}, {0}, 0}));
}

}  // namespace skillet::passes
