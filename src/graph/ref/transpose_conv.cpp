// TRANSPOSE_CONV, 8-bit: multiplies every input pixel by every filter tap in one matrix multiply, then adds the
// products to the output pixels.
#include <algorithm>

#include "base/int_math.h"
#include "graph/ref/hybrid.h"
#include "graph/ref/weighted.h"
#include "graph/ref/window.h"

namespace skillet::ref {
namespace {

struct TransposeConvPlan {
  Window window;  // of the forward convolution: its input is this op's output
  size_t batches = 0, depth = 0, depth_padded = 0, channels = 0;
  int32_t input_zero_point = 0;
  std::vector<int16_t> filter;  // [kernel_h * kernel_w][channels][depth_padded]
  OutputStage stage;
  // Scratch, reused by every run.
  std::vector<int16_t> pixels;    // [kStripPx][depth_padded]
  std::vector<int32_t> products;  // [kStripPx][kernel_h * kernel_w][channels]
  std::vector<int32_t> sums;      // [output pixels of this op][channels]
};

constexpr size_t kStripPx = 16;

// Reorders [channels][taps][depth] to [taps][channels][depth].
std::vector<int16_t> taps_first(const std::vector<int16_t>& filter, size_t channels, size_t depth) {
  std::vector<int16_t> out(filter.size());
  const size_t taps = filter.size() / depth / channels;
  for (size_t row = 0; row < taps * channels; ++row) {
    const size_t to = row % taps * channels + row / taps;
    std::copy_n(filter.data() + row * depth, depth, out.data() + to * depth);
  }
  return out;
}

void scatter(TransposeConvPlan& plan, size_t y, size_t x, const int32_t* products) {
  const Window& w = plan.window;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < w.kernel_w; ++kx) {
      const int32_t out_y = w.input_row(y, ky), out_x = w.input_col(x, kx);
      if (!w.has_row(out_y) || !w.has_col(out_x)) continue;
      int32_t* to = plan.sums.data() + w.input_index(out_y, out_x) * plan.channels;
      const int32_t* from = products + static_cast<size_t>(ky * w.kernel_w + kx) * plan.channels;
      for (size_t n = 0; n < plan.channels; ++n) to[n] = wrapping_add(to[n], from[n]);
    }
  }
}

// Computes plan.sums.
template <typename T>
void sum_image(TransposeConvPlan& plan, const T* in) {
  const Window& w = plan.window;
  std::fill(plan.sums.begin(), plan.sums.end(), 0);
  const size_t rows = plan.products.size() / kStripPx, output_w = static_cast<size_t>(w.output_w);
  for (size_t y = 0; y < static_cast<size_t>(w.output_h); ++y) {
    for (size_t first = 0; first < output_w; first += kStripPx) {
      const size_t count = std::min(kStripPx, output_w - first);
      for (size_t i = 0; i < count; ++i, in += plan.depth) {
        gemm::widen(in, plan.depth, plan.input_zero_point, plan.pixels.data() + i * plan.depth_padded);
      }
      gemm::matmul_i16(plan.pixels.data(), count, plan.depth_padded, plan.filter.data(), rows, plan.depth_padded,
                       plan.depth_padded, plan.products.data(), rows);
      for (size_t i = 0; i < count; ++i) scatter(plan, y, first + i, plan.products.data() + i * rows);
    }
  }
}

template <typename T>
void run_image(TransposeConvPlan& plan, const T* in, T* out) {
  sum_image(plan, in);
  gemm::requantize(plan.sums.data(), plan.window.input_px(), plan.channels, plan.stage.from(0), out);
}

}  // namespace

Result<Window> transposed_window(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &filter = c.input(1), &input = c.input(2), &output = c.output();
  ir::ConvAttrs forward = attrs;
  forward.dilation_h = forward.dilation_w = 1;
  // TFLite computes padding from the size that the forward convolution would have, which can differ from the input's.
  ir::Shape forward_output = output.shape;
  for (size_t i : {1, 2}) {
    const int32_t kernel = filter.shape.dims[i], stride = i == 1 ? attrs.stride_h : attrs.stride_w;
    const int32_t covered = attrs.padding == ir::Padding::same ? 1 : kernel;
    forward_output.dims[i] = (output.shape.dims[i] - covered) / stride + 1;
  }
  SK_TRY_ASSIGN(Window window, conv_window(c, forward, output.shape, filter.shape, forward_output));
  window.output_h = input.shape[1];
  window.output_w = input.shape[2];
  return window;
}

namespace {

// Without the output stage.
Result<TransposeConvPlan> plan_of(const Context& c) {
  const ir::Tensor &filter = c.input(1), &input = c.input(2);
  TransposeConvPlan plan;
  plan.channels = dim(c.output(), 3);
  SK_TRY_ASSIGN(plan.window, transposed_window(c));
  plan.batches = dim(input, 0);
  plan.depth = dim(input, 3);
  plan.depth_padded = align_up(plan.depth, gemm::kDepthAlign);
  const size_t rows = elem_count(filter) / plan.depth;
  plan.filter = taps_first(widen_rows(filter, rows, plan.depth, plan.depth_padded), plan.channels, plan.depth_padded);
  plan.pixels.resize(kStripPx * plan.depth_padded);
  plan.products.resize(kStripPx * rows);
  plan.sums.resize(plan.window.input_px() * plan.channels);
  return plan;
}

// Float, with int8 weights: each image is quantized by itself.
Result<KernelPtr> prepare_hybrid_transpose_conv(const Context& c) {
  SK_TRY_ASSIGN(FloatStage stage, float_stage(c, dim(c.output(), 3), c.attrs<ir::ConvAttrs>().activation, 3));
  SK_TRY_ASSIGN(TransposeConvPlan plan, plan_of(c));
  const size_t elems = plan.window.output_px() * plan.depth;
  return make_kernel([plan = std::move(plan), stage = std::move(stage), image = std::vector<int8_t>(elems), elems,
                      in = c.input_index(2), out = c.output_index()](Tensors t) mutable {
    const float* added = stage.bias.in(t);
    float* to = elements<float>(t[out]);
    for (size_t b = 0; b < plan.batches; ++b) {
      const InputQuant quant = quantize_input(elements<float>(t[in]) + b * elems, elems, true, image.data());
      plan.input_zero_point = quant.zero_point;
      sum_image(plan, image.data());
      for (size_t px = 0; px < plan.window.input_px(); ++px, to += plan.channels)
        stage.finish(plan.sums.data() + px * plan.channels, quant.scale, FloatStage::Order::scales_first, added, to);
    }
  });
}

}  // namespace

Result<KernelPtr> prepare_transpose_conv(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor& input = c.input(2);
  SK_TRY(c.constant_ints(0));
  if (input.dtype == ir::DType::int16) return prepare_int16_transpose_conv(c);
  if (is_hybrid(c, 2, 1)) return prepare_hybrid_transpose_conv(c);
  if (input.dtype == ir::DType::float32) return prepare_float_transpose_conv(c);
  SK_TRY_ASSIGN(OutputStage stage, output_stage({.context = c,
                                                 .input = 2,
                                                 .filter = 1,
                                                 .bias = 3,
                                                 .channels = dim(c.output(), 3),
                                                 .activation = attrs.activation}));
  SK_TRY_ASSIGN(TransposeConvPlan plan, plan_of(c));
  plan.stage = std::move(stage);
  plan.input_zero_point = input.quant.zero_point();
  return with_8bit(input.dtype, [&]<typename T>(T) {
    return make_kernel(
        [plan = std::move(plan), in = c.input_index(2), out = c.output_index()](Tensors tensors) mutable {
          for (size_t b = 0; b < plan.batches; ++b) {
            run_image(plan, elements<T>(tensors[in]) + b * plan.window.output_px() * plan.depth,
                      elements<T>(tensors[out]) + b * plan.window.input_px() * plan.channels);
          }
        });
  });
}

}  // namespace skillet::ref
