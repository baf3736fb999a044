// CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV in float32: plain loops. Sums are in the order of
// TFLite's reference kernels, for all output channels of a pixel in parallel.
#include <algorithm>

#include "graph/ref/float_weights.h"
#include "graph/ref/weighted.h"
#include "graph/ref/window.h"

namespace skillet::ref {

Result<FloatWeights> FloatWeights::of(const Context& c, size_t input, size_t count) {
  FloatWeights weights;
  if (!c.has_input(input)) {
    weights.values_.resize(count);
    return weights;
  }
  const ir::Tensor& tensor = c.input(input);
  if (tensor.dtype != ir::DType::float32) {
    return c.unsupported("input {} '{}' is {}, expected float32", input, tensor.name, ir::dtype_name(tensor.dtype));
  }
  weights.tensor_ = c.input_index(input);
  if (tensor.is_constant()) weights.values_ = tensor.values<float>();
  return weights;
}

namespace {

struct FloatConvPlan {
  Window window;
  size_t batches = 0, channels_in = 0, channels_out = 0;
  size_t group_in = 0, group_out = 0;  // input channels that an output channel reads; output channels that share them
  bool filter_hwc = false;             // depthwise order 1HWC, else OHWI
  FloatWeights filter, bias;
  FloatRange range;
  std::vector<float> ordered;  // the filter, [kernel_h * kernel_w][group_in][channels_out]
  std::vector<float> sums;     // scratch [channels_out]

  size_t taps() const { return static_cast<size_t>(window.kernel_h) * static_cast<size_t>(window.kernel_w); }
};

void order_filter(FloatConvPlan& plan, const float* filter) {
  const size_t taps = plan.taps(), depth = plan.group_in, channels = plan.channels_out;
  plan.ordered.resize(taps * depth * channels);
  for (size_t n = 0; n < channels; ++n) {
    for (size_t k = 0; k < taps * depth; ++k) {
      plan.ordered[k * channels + n] = plan.filter_hwc ? filter[k * channels + n] : filter[n * taps * depth + k];
    }
  }
}

// Adds the contribution of one input pixel to the sums of all output channels.
void add_tap(FloatConvPlan& plan, const float* pixel, const float* weights) {
  float* sums = plan.sums.data();
  const size_t channels = plan.channels_out, group_out = plan.group_out;
  if (plan.group_in == 1 && group_out == 1) {
    for (size_t n = 0; n < channels; ++n) sums[n] += pixel[n] * weights[n];
    return;
  }
  for (size_t i = 0; i < plan.group_in; ++i, weights += channels) {
    for (size_t n = 0, group = 0; n < channels; n += group_out, ++group) {
      const float value = pixel[group * plan.group_in + i];
      for (size_t k = n; k < n + group_out; ++k) sums[k] += value * weights[k];
    }
  }
}

void sum_windows(FloatConvPlan& plan, const float* image, size_t y, size_t x) {
  const Window& w = plan.window;
  std::fill(plan.sums.begin(), plan.sums.end(), 0.0F);
  const float* weights = plan.ordered.data();
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < w.kernel_w; ++kx, weights += plan.group_in * plan.channels_out) {
      const int32_t in_y = w.input_row(y, ky), in_x = w.input_col(x, kx);
      if (!w.has_row(in_y) || !w.has_col(in_x)) continue;
      add_tap(plan, image + w.input_index(in_y, in_x) * plan.channels_in, weights);
    }
  }
}

void run_float_conv(FloatConvPlan& plan, Tensors t, const float* in, float* out) {
  const auto output_w = static_cast<size_t>(plan.window.output_w);
  const float* bias = plan.bias.in(t);
  for (size_t b = 0; b < plan.batches; ++b, in += plan.window.input_px() * plan.channels_in) {
    for (size_t px = 0; px < plan.window.output_px(); ++px) {
      sum_windows(plan, in, px / output_w, px % output_w);
      for (size_t n = 0; n < plan.channels_out; ++n) {
        *out++ = std::min(std::max(plan.sums[n] + bias[n], plan.range.min), plan.range.max);
      }
    }
  }
}

struct FloatTransposePlan {
  Window window;  // of the forward convolution
  size_t batches = 0, depth = 0, channels = 0;
  FloatWeights filter, bias;  // filter [channels][kernel_h][kernel_w][depth]
  FloatRange range;
};

// Adds one input pixel's contribution to each output pixel that the filter covers, channel by channel.
void scatter(const FloatTransposePlan& plan, const float* filter, const float* pixel, size_t y, size_t x, float* out) {
  const Window& w = plan.window;
  const auto width = static_cast<size_t>(w.kernel_w), taps = static_cast<size_t>(w.kernel_h) * width;
  for (size_t i = 0; i < plan.depth * taps; ++i) {
    const size_t k = i / taps, tap = i % taps;
    const int32_t out_y = w.input_row(y, static_cast<int32_t>(tap / width));
    const int32_t out_x = w.input_col(x, static_cast<int32_t>(tap % width));
    if (!w.has_row(out_y) || !w.has_col(out_x)) continue;
    float* to = out + w.input_index(out_y, out_x) * plan.channels;
    for (size_t n = 0; n < plan.channels; ++n) to[n] += pixel[k] * filter[(n * taps + tap) * plan.depth + k];
  }
}

void run_transposed(const FloatTransposePlan& plan, Tensors t, const float* in, float* out) {
  const Window& w = plan.window;
  const float *filter = plan.filter.in(t), *bias = plan.bias.in(t);
  const size_t width = static_cast<size_t>(w.output_w), elems = w.input_px() * plan.channels;
  for (size_t b = 0; b < plan.batches; ++b, out += elems) {
    std::fill_n(out, elems, 0.0F);
    for (size_t px = 0; px < w.output_px(); ++px, in += plan.depth) {
      scatter(plan, filter, in, px / width, px % width, out);
    }
    for (size_t i = 0; i < elems; ++i) {
      out[i] = std::min(std::max(out[i] + bias[i % plan.channels], plan.range.min), plan.range.max);
    }
  }
}

}  // namespace

Result<KernelPtr> prepare_float_conv_2d(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &input = c.input(0), &filter = c.input(1), &output = c.output();
  FloatConvPlan plan;
  SK_TRY_ASSIGN(plan.window, conv_window(c, attrs, input.shape, filter.shape, output.shape));
  plan.batches = dim(input, 0);
  plan.channels_in = dim(input, 3);
  plan.channels_out = dim(output, 3);
  plan.filter_hwc = c.op().kind == ir::OpKind::depthwise_conv_2d;
  plan.group_in = plan.filter_hwc ? 1 : dim(filter, 3);
  plan.group_out = plan.channels_out / (plan.channels_in / plan.group_in);
  SK_TRY_ASSIGN(plan.filter, FloatWeights::of(c, 1, 0));
  SK_TRY_ASSIGN(plan.bias, FloatWeights::of(c, 2, plan.channels_out));
  SK_TRY_ASSIGN(plan.range, float_activation_range(c, attrs.activation));
  plan.sums.resize(plan.channels_out);
  const bool constant = filter.is_constant();
  if (constant) order_filter(plan, plan.filter.in({}));
  return make_kernel(
      [plan = std::move(plan), constant, in = c.input_index(0), out = c.output_index()](Tensors t) mutable {
        if (!constant) order_filter(plan, plan.filter.in(t));
        run_float_conv(plan, t, elements<float>(t[in]), elements<float>(t[out]));
      });
}

Result<KernelPtr> prepare_float_fully_connected(const Context& c) {
  const ir::Tensor& filter = c.input(1);
  const size_t channels = dim(filter, 0), depth = dim(filter, 1), rows = elem_count(c.input(0)) / depth;
  SK_TRY_ASSIGN(FloatWeights weights, FloatWeights::of(c, 1, 0));
  SK_TRY_ASSIGN(FloatWeights bias, FloatWeights::of(c, 2, channels));
  SK_TRY_ASSIGN(const FloatRange range, float_activation_range(c, c.attrs<ir::FullyConnectedAttrs>().activation));
  return make_kernel([=, weights = std::move(weights), bias = std::move(bias), in = c.input_index(0),
                      out = c.output_index()](Tensors t) {
    const float *from = elements<float>(t[in]), *by = weights.in(t), *added = bias.in(t);
    float* to = elements<float>(t[out]);
    for (size_t i = 0; i < rows * channels; ++i) {
      const size_t r = i / channels, n = i % channels;
      float sum = 0;
      for (size_t k = 0; k < depth; ++k) sum += from[r * depth + k] * by[n * depth + k];
      to[i] = std::min(std::max(sum + added[n], range.min), range.max);
    }
  });
}

Result<KernelPtr> prepare_float_transpose_conv(const Context& c) {
  if (c.output().dtype != ir::DType::float32) return c.unsupported("{} output", ir::dtype_name(c.output().dtype));
  FloatTransposePlan plan{.batches = dim(c.input(2), 0), .depth = dim(c.input(2), 3), .channels = dim(c.output(), 3)};
  SK_TRY_ASSIGN(plan.window, transposed_window(c));
  SK_TRY_ASSIGN(plan.filter, FloatWeights::of(c, 1, 0));
  SK_TRY_ASSIGN(plan.bias, FloatWeights::of(c, 3, plan.channels));
  SK_TRY_ASSIGN(plan.range, float_activation_range(c, c.attrs<ir::ConvAttrs>().activation));
  return make_kernel([plan = std::move(plan), in = c.input_index(2), out = c.output_index()](Tensors t) {
    run_transposed(plan, t, elements<const float>(t[in]), elements<float>(t[out]));
  });
}

}  // namespace skillet::ref
