// CONV_2D and DEPTHWISE_CONV_2D in float32: plain loops. Sums run in the order of TFLite's reference kernels.
#include <algorithm>

#include "ref/window.h"

namespace skillet::ref {
namespace {

struct FloatConvPlan {
  Window window;
  size_t batches = 0, channels_in = 0, channels_out = 0;
  size_t group_in = 0, group_out = 0;  // input channels that an output channel sees; output channels that share them
  bool filter_hwc = false;             // depthwise order 1HWC, else OHWI
  std::vector<float> filter, bias;
  FloatRange range;
};

float sum_window(const FloatConvPlan& plan, const float* image, size_t y, size_t x, size_t channel) {
  const Window& w = plan.window;
  const size_t first = channel / plan.group_out * plan.group_in;
  float sum = 0;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < w.kernel_w; ++kx) {
      const int32_t in_y = w.input_row(y, ky), in_x = w.input_col(x, kx);
      if (!w.has_row(in_y) || !w.has_col(in_x)) continue;
      const float* from = image + w.input_index(in_y, in_x) * plan.channels_in + first;
      const size_t taps = static_cast<size_t>(w.kernel_h) * static_cast<size_t>(w.kernel_w);
      const size_t tap = static_cast<size_t>(ky) * static_cast<size_t>(w.kernel_w) + static_cast<size_t>(kx);
      const float* weights = plan.filter.data() + (plan.filter_hwc ? tap * plan.channels_out + channel
                                                                   : (channel * taps + tap) * plan.group_in);
      for (size_t i = 0; i < plan.group_in; ++i) sum += from[i] * weights[i];
    }
  }
  return sum;
}

void run_float_conv(const FloatConvPlan& plan, const float* in, float* out) {
  const auto output_w = static_cast<size_t>(plan.window.output_w);
  for (size_t b = 0; b < plan.batches; ++b, in += plan.window.input_px() * plan.channels_in) {
    for (size_t px = 0; px < plan.window.output_px(); ++px) {
      for (size_t n = 0; n < plan.channels_out; ++n) {
        const float sum = sum_window(plan, in, px / output_w, px % output_w, n) + plan.bias[n];
        *out++ = std::min(std::max(sum, plan.range.min), plan.range.max);
      }
    }
  }
}

}  // namespace

Result<KernelPtr> prepare_float_conv_2d(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &input = c.input(0), &filter = c.input(1), &output = c.output();
  if (filter.dtype != ir::DType::float32 || !filter.is_constant())
    return c.unsupported("filter is not constant float32");
  FloatConvPlan plan;
  SK_TRY_ASSIGN(plan.window, conv_window(c, attrs, input.shape, filter.shape, output.shape));
  plan.batches = dim(input, 0);
  plan.channels_in = dim(input, 3);
  plan.channels_out = dim(output, 3);
  plan.filter_hwc = c.op().kind == ir::OpKind::depthwise_conv_2d;
  plan.group_in = plan.filter_hwc ? 1 : dim(filter, 3);
  plan.group_out = plan.channels_out / (plan.channels_in / plan.group_in);
  plan.filter = filter.values<float>();
  plan.bias.resize(plan.channels_out);
  if (c.has_input(2)) {
    if (!c.input(2).is_constant() || c.input(2).dtype != ir::DType::float32)
      return c.unsupported("bias is not constant");
    plan.bias = c.input(2).values<float>();
  }
  SK_TRY_ASSIGN(plan.range, float_activation_range(c, attrs.activation));
  return make_kernel([plan = std::move(plan), in = c.input_index(0), out = c.output_index()](Tensors tensors) {
    run_float_conv(plan, elements<float>(tensors[in]), elements<float>(tensors[out]));
  });
}

}  // namespace skillet::ref
