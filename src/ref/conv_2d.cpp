// CONV_2D, 8-bit: windows are gathered into int16 rows (im2col) strip by strip, then multiplied with the filters.
// Grouped convolutions (filter depth < input depth) run once per group.
#include <algorithm>

#include "base/byte_gemm.h"
#include "base/int_math.h"
#include "ref/weighted.h"
#include "ref/window.h"

namespace skillet::ref {
namespace {

struct ConvPlan {
  Window window;
  int32_t input_zero_point = 0;
  size_t channels_in = 0, channels_out = 0;
  size_t groups = 1, group_in = 0, group_out = 0;
  size_t depth = 0, depth_padded = 0;  // elements of a window of one group
  std::vector<int16_t> filters;        // [channels_out][depth_padded], each row in the order ky, kx, channel
  OutputStage stage;
  size_t strip_px = 0;
  // Scratch, reused by every run.
  std::vector<int16_t> rows;  // [strip_px][depth_padded]
  std::vector<int32_t> sums;  // [strip_px][channels_out]
};

// Writes the window of output pixel (y, x): padding is the zero point, which is 0 once it is subtracted.
template <typename T>
void gather_window(const ConvPlan& plan, const T* image, size_t y, size_t x, size_t group, int16_t* row) {
  const Window& w = plan.window;
  const size_t first = group * plan.group_in, n = plan.group_in;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    const int32_t in_y = w.input_row(y, ky);
    for (int32_t kx = 0; kx < w.kernel_w;) {
      const int32_t in_x = w.input_col(x, kx);
      const bool inside = w.has_row(in_y) && w.has_col(in_x);
      // Neighbouring columns are contiguous when nothing lies between them.
      const bool together = w.dilation_w == 1 && plan.groups == 1;
      const int32_t take = inside && together ? std::min(w.kernel_w - kx, w.input_w - in_x) : 1;
      const size_t count = n * static_cast<size_t>(take);
      if (inside) {
        gemm::widen(image + w.input_index(in_y, in_x) * plan.channels_in + first, count, plan.input_zero_point, row);
      } else {
        std::fill_n(row, count, int16_t{0});
      }
      row += count;
      kx += take;
    }
  }
}

// Output pixels [first, first + count) of one image, row-major.
template <typename T>
void gather_strip(ConvPlan& plan, const T* image, size_t first, size_t count, size_t group) {
  const Window& w = plan.window;
  if (w.is_identity() && plan.groups == 1 && plan.depth == plan.depth_padded) {
    gemm::widen(image + first * plan.channels_in, count * plan.depth, plan.input_zero_point, plan.rows.data());
    return;
  }
  const auto output_w = static_cast<size_t>(w.output_w);
  for (size_t i = 0; i < count; ++i) {
    int16_t* row = plan.rows.data() + i * plan.depth_padded;
    gather_window(plan, image, (first + i) / output_w, (first + i) % output_w, group, row);
  }
}

template <typename T>
void run_image(ConvPlan& plan, const T* image, T* out) {
  const size_t pixels = plan.window.output_px();
  for (size_t first = 0; first < pixels; first += plan.strip_px) {
    const size_t count = std::min(plan.strip_px, pixels - first);
    for (size_t g = 0; g < plan.groups; ++g) {
      gather_strip(plan, image, first, count, g);
      gemm::matmul_i16(plan.rows.data(), count, plan.depth_padded,
                       plan.filters.data() + g * plan.group_out * plan.depth_padded, plan.group_out, plan.depth_padded,
                       plan.depth_padded, plan.sums.data() + g * plan.group_out, plan.channels_out);
    }
    gemm::requantize(plan.sums.data(), count, plan.channels_out, plan.stage.from(0), out + first * plan.channels_out);
  }
}

}  // namespace

Result<KernelPtr> prepare_conv_2d(const Context& c) {
  if (c.input(0).dtype == ir::DType::float32) return prepare_float_conv_2d(c);
  if (c.input(0).dtype == ir::DType::int16) return prepare_int16_conv_2d(c);
  const bool grouped = dim(c.input(1), 3) != dim(c.input(0), 3);
  return byte_gemm::available() && !grouped ? prepare_byte_conv_2d(c) : prepare_wide_conv_2d(c);
}

Result<KernelPtr> prepare_wide_conv_2d(const Context& c) {
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  const ir::Tensor &input = c.input(0), &filter = c.input(1), &output = c.output();
  ConvPlan plan;
  SK_TRY_ASSIGN(plan.window, conv_window(c, attrs, input.shape, filter.shape, output.shape));
  plan.input_zero_point = input.quant.zero_point();
  plan.channels_in = dim(input, 3);
  plan.channels_out = dim(output, 3);
  plan.group_in = dim(filter, 3);
  plan.groups = plan.channels_in / plan.group_in;
  plan.group_out = plan.channels_out / plan.groups;
  SK_TRY_ASSIGN(plan.stage,
                output_stage({.context = c, .channels = plan.channels_out, .activation = attrs.activation}));
  plan.depth = dim(filter, 1) * dim(filter, 2) * plan.group_in;
  plan.depth_padded = align_up(plan.depth, gemm::kDepthAlign);
  plan.filters = widen_rows(filter, plan.channels_out, plan.depth, plan.depth_padded);
  // A strip of windows that stays in the second-level cache.
  constexpr size_t kStripBytes = 256 * 1024;
  plan.strip_px = std::clamp<size_t>(kStripBytes / (plan.depth_padded * sizeof(int16_t)), 8, 256);
  plan.rows.resize(plan.strip_px * plan.depth_padded);
  plan.sums.resize(plan.strip_px * plan.channels_out);
  return with_8bit(input.dtype, [&](auto type) {
    using T = decltype(type);
    return make_kernel([plan = std::move(plan), batches = dim(input, 0), in = c.input_index(0),
                        out = c.output_index()](Tensors tensors) mutable {
      for (size_t b = 0; b < batches; ++b) {
        run_image(plan, elements<T>(tensors[in]) + b * plan.window.input_px() * plan.channels_in,
                  elements<T>(tensors[out]) + b * plan.window.output_px() * plan.channels_out);
      }
    });
  });
}

}  // namespace skillet::ref
