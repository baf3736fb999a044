// CONV_2D, 8-bit: choice of the kernel, and the kernel for any CPU.
#include "graph/ref/conv_rows.h"
#include "graph/ref/hybrid.h"
#include "simd/byte_gemm.h"

namespace skillet::ref {

Result<ConvRows> ConvRows::of(const Context& c) {
  const ir::Tensor &input = c.input(0), &filter = c.input(1), &output = c.output();
  ConvRows plan;
  SK_TRY_ASSIGN(plan.window, conv_window(c, c.attrs<ir::ConvAttrs>(), input.shape, filter.shape, output.shape));
  plan.channels_in = dim(input, 3);
  plan.channels_out = dim(output, 3);
  plan.group_in = dim(filter, 3);
  plan.groups = plan.channels_in / plan.group_in;
  plan.group_out = plan.channels_out / plan.groups;
  plan.depth = dim(filter, 1) * dim(filter, 2) * plan.group_in;
  plan.depth_padded = align_up(plan.depth, gemm::kDepthAlign);
  plan.filters = widen_rows(filter, plan.channels_out, plan.depth, plan.depth_padded);
  // A strip of windows that fits in the second-level cache.
  constexpr size_t kStripBytes = 256 * 1024;
  plan.strip_px = std::clamp<size_t>(kStripBytes / (plan.depth_padded * sizeof(int16_t)), 8, 256);
  plan.rows.resize(plan.strip_px * plan.depth_padded);
  plan.sums.resize(plan.strip_px * plan.channels_out);
  return plan;
}

Result<KernelPtr> prepare_conv_2d(const Context& c) {
  if (is_hybrid(c)) return prepare_hybrid_conv_2d(c);
  if (c.input(0).dtype == ir::DType::float32) return prepare_float_conv_2d(c);
  if (c.input(0).dtype == ir::DType::int16) return prepare_int16_conv_2d(c);
  const bool grouped = dim(c.input(1), 3) != dim(c.input(0), 3);
  return byte_gemm::available() && !grouped ? prepare_byte_conv_2d(c) : prepare_wide_conv_2d(c);
}

Result<KernelPtr> prepare_wide_conv_2d(const Context& c) {
  const ir::Tensor& input = c.input(0);
  const auto& attrs = c.attrs<ir::ConvAttrs>();
  SK_TRY_ASSIGN(OutputStage stage, output_stage({.context = c,
                                                 .channels = dim(c.output(), 3),
                                                 .activation = attrs.activation,
                                                 .float_product = attrs.float_product}));
  SK_TRY_ASSIGN(ConvRows rows, ConvRows::of(c));
  rows.input_zero_point = input.quant.zero_point();
  return with_8bit(input.dtype, [&]<typename T>(T) {
    return make_kernel([rows = std::move(rows), stage = std::move(stage), batches = dim(input, 0),
                        in = c.input_index(0), out = c.output_index()](Tensors tensors) mutable {
      const size_t channels = rows.channels_out;
      T* to = elements<T>(tensors[out]);
      for (size_t b = 0; b < batches; ++b, to += rows.window.output_px() * channels) {
        const T* image = elements<T>(tensors[in]) + b * rows.window.input_px() * rows.channels_in;
        rows.run(image, [&](const int32_t* sums, size_t first, size_t count) {
          gemm::requantize(sums, count, channels, stage.from(0), to + first * channels);
        });
      }
    });
  });
}

}  // namespace skillet::ref
