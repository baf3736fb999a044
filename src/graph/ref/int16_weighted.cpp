// CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED of int16 activations with int8 weights. Zero points
// are 0, so padding adds nothing.
#include <algorithm>

#include "graph/ref/weighted.h"

namespace skillet::ref {
namespace {

// Sum of products; short runs are summed in 32 bits.
int64_t dot(const int16_t* a, const int16_t* b, size_t count) {
  constexpr size_t kFits32Bits = 256;
  int64_t sum = 0;
  for (size_t first = 0; first < count; first += kFits32Bits) {
    const size_t n = std::min(kFits32Bits, count - first);
    int32_t part = 0;
    for (size_t i = 0; i < n; ++i) part += a[first + i] * b[first + i];
    sum += part;
  }
  return sum;
}

std::vector<int16_t> widened(const ir::Tensor& filter) {
  return widen_rows(filter, 1, elem_count(filter), elem_count(filter));
}

struct ConvPlan {
  Window window;
  size_t batches = 1, channels_in = 0, channels_out = 0, group_in = 0, group_out = 0;
  std::vector<int16_t> filter = {};  // [channels_out][kernel_h][kernel_w][group_in]
  WideStage stage = {};
  std::vector<int16_t> row = {};  // scratch: a window of all channels, group by group
};

// Writes the window of output pixel (y, x), one group after the other.
void gather_window(ConvPlan& plan, const int16_t* image, size_t y, size_t x) {
  const Window& w = plan.window;
  int16_t* to = plan.row.data();
  for (size_t first = 0; first < plan.channels_in; first += plan.group_in) {
    for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
      for (int32_t kx = 0; kx < w.kernel_w; ++kx, to += plan.group_in) {
        const int32_t in_y = w.input_row(y, ky), in_x = w.input_col(x, kx);
        if (w.has_row(in_y) && w.has_col(in_x)) {
          std::copy_n(image + w.input_index(in_y, in_x) * plan.channels_in + first, plan.group_in, to);
        } else {
          std::fill_n(to, plan.group_in, int16_t{0});
        }
      }
    }
  }
}

void run_conv(ConvPlan& plan, const int16_t* in, int16_t* out) {
  const size_t depth = plan.filter.size() / plan.channels_out, width = static_cast<size_t>(plan.window.output_w);
  for (size_t b = 0; b < plan.batches; ++b, in += plan.window.input_px() * plan.channels_in) {
    for (size_t px = 0; px < plan.window.output_px(); ++px) {
      gather_window(plan, in, px / width, px % width);
      for (size_t n = 0; n < plan.channels_out; ++n) {
        const int16_t* window = plan.row.data() + n / plan.group_out * depth;
        *out++ = plan.stage.finish(dot(window, plan.filter.data() + n * depth, depth), n);
      }
    }
  }
}

struct DepthwisePlan {
  Window window;
  size_t batches = 0, channels = 0, multiplier = 1;
  std::vector<int16_t> filter;  // [kernel_h][kernel_w][channels]
  WideStage stage;
};

int64_t depthwise_sum(const DepthwisePlan& plan, const int16_t* image, size_t y, size_t x, size_t channel) {
  const Window& w = plan.window;
  const size_t channels_in = plan.channels / plan.multiplier;
  int64_t sum = 0;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < w.kernel_w; ++kx) {
      const int32_t in_y = w.input_row(y, ky), in_x = w.input_col(x, kx);
      if (!w.has_row(in_y) || !w.has_col(in_x)) continue;
      const size_t tap = static_cast<size_t>(ky) * static_cast<size_t>(w.kernel_w) + static_cast<size_t>(kx);
      sum += image[w.input_index(in_y, in_x) * channels_in + channel / plan.multiplier] *
             plan.filter[tap * plan.channels + channel];
    }
  }
  return sum;
}

void run_depthwise(const DepthwisePlan& plan, const int16_t* in, int16_t* out) {
  const size_t width = static_cast<size_t>(plan.window.output_w);
  for (size_t b = 0; b < plan.batches; ++b, in += plan.window.input_px() * plan.channels / plan.multiplier) {
    for (size_t px = 0; px < plan.window.output_px(); ++px) {
      for (size_t n = 0; n < plan.channels; ++n) {
        *out++ = plan.stage.finish(depthwise_sum(plan, in, px / width, px % width, n), n);
      }
    }
  }
}

struct TransposePlan {
  Window window;  // of the forward convolution
  size_t batches = 0, depth = 0, channels = 0;
  std::vector<int16_t> filter;  // [channels][kernel_h][kernel_w][depth]
  WideStage stage;
  std::vector<int64_t> sums;  // scratch: [output pixels of this op][channels]
};

// Adds one input pixel's contribution to each output pixel that the filter covers.
void scatter(TransposePlan& plan, const int16_t* pixel, size_t y, size_t x) {
  const Window& w = plan.window;
  const auto taps = static_cast<size_t>(w.kernel_h) * static_cast<size_t>(w.kernel_w);
  for (size_t tap = 0; tap < taps; ++tap) {
    const auto ky = static_cast<int32_t>(tap) / w.kernel_w, kx = static_cast<int32_t>(tap) % w.kernel_w;
    const int32_t out_y = w.input_row(y, ky), out_x = w.input_col(x, kx);
    if (!w.has_row(out_y) || !w.has_col(out_x)) continue;
    int64_t* to = plan.sums.data() + w.input_index(out_y, out_x) * plan.channels;
    for (size_t n = 0; n < plan.channels; ++n) {
      to[n] += dot(pixel, plan.filter.data() + (n * taps + tap) * plan.depth, plan.depth);
    }
  }
}

void run_transposed(TransposePlan& plan, const int16_t* in, int16_t* out) {
  const Window& w = plan.window;
  const size_t width = static_cast<size_t>(w.output_w);
  for (size_t b = 0; b < plan.batches; ++b) {
    std::fill(plan.sums.begin(), plan.sums.end(), 0);
    for (size_t px = 0; px < w.output_px(); ++px, in += plan.depth) scatter(plan, in, px / width, px % width);
    for (size_t i = 0; i < plan.sums.size(); ++i) *out++ = plan.stage.finish(plan.sums[i], i % plan.channels);
  }
}

}  // namespace

Result<KernelPtr> prepare_int16_layer(const Context& c) {
  SK_TRY_ASSIGN(const Layer layer, Layer::of(c));
  ConvPlan plan{.window = layer.window,
                .batches = layer.batches,
                .channels_in = layer.channels_in,
                .channels_out = layer.channels_out,
                .group_in = layer.group_in};
  SK_TRY_ASSIGN(plan.stage, wide_stage({.context = c, .channels = plan.channels_out, .activation = layer.activation}));
  plan.filter = widened(c.input(1));
  const size_t groups = plan.channels_in / plan.group_in;
  plan.group_out = plan.channels_out / groups;
  plan.row.resize(plan.filter.size() / plan.channels_out * groups);
  return make_kernel([plan = std::move(plan), in = c.input_index(0), out = c.output_index()](Tensors t) mutable {
    run_conv(plan, elements<const int16_t>(t[in]), elements<int16_t>(t[out]));
  });
}

Result<KernelPtr> prepare_int16_depthwise_conv_2d(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &input = c.input(0), &filter = c.input(1);
  DepthwisePlan plan{
      .batches = dim(input, 0), .channels = dim(filter, 3), .multiplier = static_cast<size_t>(attrs.depth_multiplier)};
  SK_TRY_ASSIGN(plan.window, conv_window(c, attrs, input.shape, filter.shape, c.output().shape));
  SK_TRY_ASSIGN(plan.stage, wide_stage({.context = c, .channels = plan.channels, .activation = attrs.activation}));
  plan.filter = widened(filter);
  return make_kernel([plan = std::move(plan), in = c.input_index(0), out = c.output_index()](Tensors t) {
    run_depthwise(plan, elements<const int16_t>(t[in]), elements<int16_t>(t[out]));
  });
}

Result<KernelPtr> prepare_int16_transpose_conv(const Context& c) {
  const ir::Tensor& input = c.input(2);
  TransposePlan plan{.batches = dim(input, 0), .depth = dim(input, 3), .channels = dim(c.output(), 3)};
  SK_TRY_ASSIGN(plan.window, transposed_window(c));
  SK_TRY_ASSIGN(plan.stage, wide_stage({.context = c,
                                        .input = 2,
                                        .filter = 1,
                                        .bias = 3,
                                        .channels = plan.channels,
                                        .activation = c.attrs<ir::ConvAttrs>().activation}));
  plan.filter = widened(c.input(1));
  plan.sums.resize(plan.window.input_px() * plan.channels);
  return make_kernel([plan = std::move(plan), in = c.input_index(2), out = c.output_index()](Tensors t) mutable {
    run_transposed(plan, elements<const int16_t>(t[in]), elements<int16_t>(t[out]));
  });
}

}  // namespace skillet::ref
