#include "graph/ref/hybrid.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "graph/ref/conv_rows.h"

namespace skillet::ref {
namespace {

// out[i] = round(zero + in[i] * by), halves away from zero, at least `low` and at most 127.
void quantize_by(const float* in, size_t count, float by, float zero, float low, int8_t* out) {
  constexpr float kHigh = 127, kHalf = 0.5F;
  for (size_t i = 0; i < count; ++i) {
    float value = zero + in[i] * by;
    value = low < value ? value : low;  // NaN becomes `low` too
    value = value < kHigh ? value : kHigh;
    const auto whole = static_cast<int32_t>(value);
    const float rest = value - static_cast<float>(whole);
    out[i] = static_cast<int8_t>(whole + static_cast<int32_t>(rest >= kHalf) - static_cast<int32_t>(rest <= -kHalf));
  }
}

// The zero point computed at the end of the range where it is more exact, as in TFLite.
int32_t nudged_zero_point(double least, double most, double scale) {
  constexpr double kLow = -128, kHigh = 127;
  const double below = least / scale, above = most / scale;
  const double zero = -kLow + std::abs(below) < kHigh + std::abs(above) ? kLow - below : kHigh - above;
  return static_cast<int32_t>(std::round(std::clamp(zero, kLow, kHigh)));
}

struct Extremes {
  float least = 0, most = 0;
  bool finite = true;
};
Extremes extremes(const float* in, size_t count) {
  Extremes found{.least = in[0], .most = in[0]};
  float all = 0;  // sum of values times zero: NaN if one is not finite
  for (size_t i = 0; i < count; ++i) {
    found.least = in[i] < found.least ? in[i] : found.least;
    found.most = in[i] > found.most ? in[i] : found.most;
    all += in[i] * 0.0F;
  }
  found.finite = !std::isnan(all);
  return found;
}

}  // namespace

bool is_hybrid(const Context& c, size_t input, size_t weights) {
  return c.input(input).dtype == ir::DType::float32 && c.has_input(weights) && ir::is_8bit(c.input(weights).dtype);
}

InputQuant quantize_input(const float* in, size_t count, bool asymmetric, int8_t* out) {
  constexpr float kHigh = 127, kSteps = 255;
  std::fill_n(out, count, int8_t{0});
  if (count == 0) return {};
  const Extremes found = extremes(in, count);
  if (!found.finite) return {.scale = std::numeric_limits<float>::quiet_NaN()};
  if (!asymmetric) {
    const float range = std::max(std::abs(found.least), std::abs(found.most));
    if (range == 0) return {};
    quantize_by(in, count, kHigh / range, 0, -kHigh, out);
    return {.scale = range / kHigh};
  }
  const float least = std::min(0.0F, found.least), most = std::max(0.0F, found.most);
  if (least == most) return {};
  const double step = (double{most} - double{least}) / kSteps;
  const InputQuant quant{.scale = (most - least) / kSteps, .zero_point = nudged_zero_point(least, most, step)};
  quantize_by(in, count, 1.0F / quant.scale, static_cast<float>(quant.zero_point), -kHigh - 1, out);
  return quant;
}

Result<void> need_hybrid_weights(const Context& c, size_t weights, size_t channels) {
  const ir::Tensor& tensor = c.input(weights);
  const ir::Quant& quant = tensor.quant;
  if (tensor.dtype != ir::DType::int8 || !tensor.is_constant() || quant.empty())
    return c.unsupported("float32 input, and weights '{}' that are not a quantized int8 constant", tensor.name);
  const auto is_zero = [](int32_t zero) { return zero == 0; };
  if (!std::all_of(quant.zero_points.begin(), quant.zero_points.end(), is_zero))
    return c.unsupported("float32 input, and weights '{}' with a zero point", tensor.name);
  if (quant.scales.size() == 1 || quant.scales.size() == channels) return {};
  return c.unsupported("{} scales of '{}' for {} channels", quant.scales.size(), tensor.name, channels);
}

Result<FloatStage> float_stage(const Context& c, size_t channels, ir::Activation activation, size_t bias) {
  constexpr size_t kFilter = 1;
  SK_TRY(need_hybrid_weights(c, kFilter, channels));
  if (c.output().dtype != ir::DType::float32) {
    return c.unsupported("float32 input, int8 filter, {} output", ir::dtype_name(c.output().dtype));
  }
  FloatStage stage{.scales = c.input(kFilter).quant.scales};
  if (stage.scales.size() == 1) stage.scales.assign(channels, stage.scales.front());
  stage.uniform =
      std::adjacent_find(stage.scales.begin(), stage.scales.end(), std::not_equal_to<>()) == stage.scales.end();
  SK_TRY_ASSIGN(stage.bias, FloatWeights::of(c, bias, channels));
  SK_TRY_ASSIGN(stage.range, float_activation_range(c, activation));
  return stage;
}

void FloatStage::finish(const int32_t* sums, float input_scale, Order order, const float* added, float* out) const {
  constexpr size_t kVector = 4;
  const size_t channels = scales.size(), vectors = channels - channels % kVector;
  const size_t joined = order == Order::scales_first ? channels : 0;
  const size_t by_channel = order == Order::channel_first ? channels : order == Order::by_fours ? vectors : joined;
  const auto limited = [&](float value) { return std::min(std::max(value, range.min), range.max); };
  size_t n = 0;
  for (; n < joined; ++n) out[n] = limited(static_cast<float>(sums[n]) * (input_scale * scales[n]) + added[n]);
  for (; n < by_channel; ++n) out[n] = limited(static_cast<float>(sums[n]) * scales[n] * input_scale + added[n]);
  for (; n < channels; ++n) out[n] = limited(static_cast<float>(sums[n]) * input_scale * scales[n] + added[n]);
}

// Each image, or each row of FULLY_CONNECTED, is quantized by itself.
Result<KernelPtr> prepare_hybrid_layer(const Context& c) {
  SK_TRY_ASSIGN(Layer layer, Layer::of(c));
  const bool is_dense = c.op().kind == ir::OpKind::fully_connected;
  if (is_dense) {
    layer.batches = layer.window.output_px();
    layer.window.input_w = layer.window.output_w = 1;
  }
  const size_t channels = layer.channels_out;
  SK_TRY_ASSIGN(FloatStage stage, float_stage(c, channels, layer.activation));
  ConvRows rows(layer);
  const bool grouped = rows.groups > 1;
  const bool asymmetric = is_dense ? c.attrs<ir::FullyConnectedAttrs>().asymmetric_inputs : grouped || !stage.uniform;
  const auto order = grouped ? FloatStage::Order::channel_first : FloatStage::Order::scales_first;
  const size_t elems = rows.window.input_px() * rows.channels_in;
  return make_kernel([=, batches = layer.batches, rows = std::move(rows), stage = std::move(stage),
                      image = std::vector<int8_t>(elems), in = c.input_index(0),
                      out = c.output_index()](Tensors t) mutable {
    const float* added = stage.bias.in(t);
    float* to = elements<float>(t[out]);
    for (size_t b = 0; b < batches; ++b, to += rows.window.output_px() * channels) {
      const auto quant = quantize_input(elements<float>(t[in]) + b * elems, elems, asymmetric, image.data());
      rows.input_zero_point = quant.zero_point;
      rows.run(image.data(), [&](const int32_t* sums, size_t first, size_t count) {
        for (size_t i = 0; i < count; ++i) {
          stage.finish(sums + i * channels, quant.scale, order, added, to + (first + i) * channels);
        }
      });
    }
  });
}

namespace {

struct HybridDepthwise {
  Window window;
  size_t channels = 0, multiplier = 1, taps = 0;
  std::vector<int8_t> filter;  // [taps][channels]
  std::vector<int32_t> filter_sums;
  // Scratch.
  std::vector<int8_t> image, spread;  // quantized image; input channels repeated for their output channels
  std::vector<int8_t> outside;        // a pixel of padding
  std::vector<const int8_t*> pixels;
  std::vector<int32_t> sums, totals;

  InputQuant take(const float* in);
  const int32_t* sum(size_t y, size_t x, int32_t zero_point);
};

InputQuant HybridDepthwise::take(const float* in) {
  const InputQuant quant = quantize_input(in, image.size(), true, image.data());
  for (size_t i = 0; multiplier > 1 && i < image.size(); ++i) {
    std::fill_n(spread.data() + i * multiplier, multiplier, image[i]);
  }
  std::fill(outside.begin(), outside.end(), static_cast<int8_t>(quant.zero_point));
  return quant;
}

const int32_t* HybridDepthwise::sum(size_t y, size_t x, int32_t zero_point) {
  const int8_t* from = multiplier > 1 ? spread.data() : image.data();
  for (size_t tap = 0; tap < taps; ++tap) {
    const auto width = static_cast<size_t>(window.kernel_w);
    const int32_t in_y = window.input_row(y, static_cast<int32_t>(tap / width));
    const int32_t in_x = window.input_col(x, static_cast<int32_t>(tap % width));
    const bool inside = window.has_row(in_y) && window.has_col(in_x);
    pixels[tap] = inside ? from + window.input_index(in_y, in_x) * channels : outside.data();
  }
  gemm::depthwise_pixel(pixels.data(), filter.data(), channels, taps, channels, sums.data(), totals.data());
  for (size_t n = 0; n < channels; ++n) sums[n] -= zero_point * filter_sums[n];
  return sums.data();
}

}  // namespace

Result<KernelPtr> prepare_hybrid_depthwise_conv_2d(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &input = c.input(0), &filter = c.input(1);
  HybridDepthwise op{.channels = dim(filter, 3), .multiplier = static_cast<size_t>(attrs.depth_multiplier)};
  SK_TRY_ASSIGN(FloatStage stage, float_stage(c, op.channels, attrs.activation));
  SK_TRY_ASSIGN(op.window, conv_window(c, attrs, input.shape, filter.shape, c.output().shape));
  op.taps = dim(filter, 1) * dim(filter, 2);
  op.filter = filter.values<int8_t>();
  op.filter_sums.resize(op.channels);
  for (size_t i = 0; i < op.filter.size(); ++i) op.filter_sums[i % op.channels] += op.filter[i];
  const size_t batches = dim(input, 0), elems = op.window.input_px() * dim(input, 3);
  op.image.resize(elems);
  if (op.multiplier > 1) op.spread.resize(elems * op.multiplier);
  op.outside.resize(op.channels);
  op.pixels.resize(op.taps);
  op.sums.resize(op.channels);
  op.totals.resize(op.channels);
  return make_kernel([=, op = std::move(op), stage = std::move(stage), in = c.input_index(0),
                      out = c.output_index()](Tensors t) mutable {
    const float* added = stage.bias.in(t);
    float* to = elements<float>(t[out]);
    const auto width = static_cast<size_t>(op.window.output_w);
    for (size_t b = 0; b < batches; ++b) {
      const InputQuant quant = op.take(elements<float>(t[in]) + b * elems);
      for (size_t px = 0; px < op.window.output_px(); ++px, to += op.channels) {
        stage.finish(op.sum(px / width, px % width, quant.zero_point), quant.scale, FloatStage::Order::by_fours, added,
                     to);
      }
    }
  });
}

}  // namespace skillet::ref
