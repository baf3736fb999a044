// DEPTHWISE_CONV_2D, 8-bit: vectors run over the channels, one tap at a time. A depth multiplier is resolved when the
// input is widened: each input channel is repeated, so that input and output channels match one to one.
#include <algorithm>

#include "ref/weighted.h"
#include "ref/window.h"

namespace skillet::ref {
namespace {

struct DepthwisePlan {
  Window window;
  int32_t input_zero_point = 0;
  size_t channels = 0, multiplier = 1;  // output channels; output channels per input channel
  std::vector<int16_t> filter;          // [kernel_h][kernel_w][channels]
  OutputStage stage;
  // Scratch, reused by every run.
  std::vector<int16_t> image;                   // [input_h][input_w][channels]
  std::vector<int32_t> sums;                    // [channels]
  std::vector<const int16_t*> pixels, weights;  // of each tap of a window that lies within the image
};

template <typename T>
void widen_image(DepthwisePlan& plan, const T* in) {
  const size_t count = plan.window.input_px() * plan.channels / plan.multiplier;
  if (plan.multiplier == 1) return gemm::widen(in, count, plan.input_zero_point, plan.image.data());
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<int16_t>(in[i] - plan.input_zero_point);
    std::fill_n(plan.image.data() + i * plan.multiplier, plan.multiplier, value);
  }
}

void sum_pixel(DepthwisePlan& plan, size_t y, size_t x) {
  const Window& w = plan.window;
  size_t taps = 0;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    const int32_t in_y = w.input_row(y, ky);
    if (!w.has_row(in_y)) continue;
    for (int32_t kx = 0; kx < w.kernel_w; ++kx) {
      const int32_t in_x = w.input_col(x, kx);
      if (!w.has_col(in_x)) continue;
      const size_t tap = static_cast<size_t>(ky) * static_cast<size_t>(w.kernel_w) + static_cast<size_t>(kx);
      plan.pixels[taps] = plan.image.data() + w.input_index(in_y, in_x) * plan.channels;
      plan.weights[taps++] = plan.filter.data() + tap * plan.channels;
    }
  }
  gemm::sum_products(plan.pixels.data(), plan.weights.data(), taps, plan.channels, plan.sums.data());
}

template <typename T>
void run_image(DepthwisePlan& plan, const T* in, T* out) {
  widen_image(plan, in);
  const auto how = plan.stage.from(0);
  for (size_t y = 0; y < static_cast<size_t>(plan.window.output_h); ++y) {
    for (size_t x = 0; x < static_cast<size_t>(plan.window.output_w); ++x, out += plan.channels) {
      sum_pixel(plan, y, x);
      gemm::requantize(plan.sums.data(), plan.channels, how, out);
    }
  }
}

}  // namespace

Result<KernelPtr> prepare_depthwise_conv_2d(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &input = c.input(0), &filter = c.input(1);
  if (input.dtype == ir::DType::float32) return prepare_float_conv_2d(c);
  if (input.dtype == ir::DType::int16) return prepare_int16_depthwise_conv_2d(c);
  DepthwisePlan plan;
  SK_TRY_ASSIGN(plan.window, conv_window(c, attrs, input.shape, filter.shape, c.output().shape));
  plan.input_zero_point = input.quant.zero_point();
  plan.channels = dim(filter, 3);
  plan.multiplier = static_cast<size_t>(attrs.depth_multiplier);
  SK_TRY_ASSIGN(plan.stage, output_stage({.context = c, .channels = plan.channels, .activation = attrs.activation}));
  plan.filter = widen_rows(filter, 1, elem_count(filter), elem_count(filter));
  plan.image.resize(plan.window.input_px() * plan.channels);
  plan.sums.resize(plan.channels);
  plan.pixels.resize(dim(filter, 1) * dim(filter, 2));
  plan.weights.resize(plan.pixels.size());
  return with_8bit(input.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([plan = std::move(plan), batches = dim(input, 0), in = c.input_index(0),
                        out = c.output_index()](Tensors tensors) mutable {
      const size_t image_elems = plan.window.input_px() * plan.channels / plan.multiplier;
      for (size_t b = 0; b < batches; ++b) {
        run_image(plan, elements<T>(tensors[in]) + b * image_elems,
                  elements<T>(tensors[out]) + b * plan.window.output_px() * plan.channels);
      }
    });
  });
}

}  // namespace skillet::ref
