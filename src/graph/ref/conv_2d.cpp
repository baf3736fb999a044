// CONV_2D and FULLY_CONNECTED: choice of the kernel, and the 8-bit kernel for any CPU.
#include "graph/ref/conv_rows.h"
#include "graph/ref/hybrid.h"
#include "simd/byte_gemm.h"

namespace skillet::ref {

ConvRows::ConvRows(const Layer& layer)
    : window(layer.window),
      channels_in(layer.channels_in),
      channels_out(layer.channels_out),
      groups(channels_in / layer.group_in),
      group_in(layer.group_in),
      group_out(channels_out / groups) {
  const ir::Tensor& filter = layer.context.input(1);
  depth = elem_count(filter) / channels_out;
  depth_padded = align_up(depth, gemm::kDepthAlign);
  filters = widen_rows(filter, channels_out, depth, depth_padded);
  // A strip of windows that fits in the second-level cache.
  constexpr size_t kStripBytes = 256 * 1024;
  strip_px = std::clamp<size_t>(kStripBytes / (depth_padded * sizeof(int16_t)), 8, 256);
  strip_px = std::clamp<size_t>(window.output_px(), 1, strip_px);
  rows.resize(strip_px * depth_padded);
  sums.resize(strip_px * channels_out);
}

Result<KernelPtr> prepare_conv_2d(const Context& c) {
  if (is_hybrid(c)) return prepare_hybrid_layer(c);
  if (c.input(0).dtype == ir::DType::float32) return prepare_float_conv_2d(c);
  if (c.input(0).dtype == ir::DType::int16) return prepare_int16_layer(c);
  const bool grouped = dim(c.input(1), 3) != dim(c.input(0), 3);
  return byte_gemm::available() && !grouped ? prepare_byte_layer(c) : prepare_wide_layer(c);
}

Result<KernelPtr> prepare_fully_connected(const Context& c) {
  const ir::Tensor& input = c.input(0);
  if (is_hybrid(c)) return prepare_hybrid_layer(c);
  if (input.dtype == ir::DType::float32 && c.output().dtype == ir::DType::float32)
    return prepare_float_fully_connected(c);
  if (input.dtype == ir::DType::int16) return prepare_int16_layer(c);
  return byte_gemm::available() ? prepare_byte_layer(c) : prepare_wide_layer(c);
}

Result<KernelPtr> prepare_wide_layer(const Context& c) {
  const ir::Tensor& input = c.input(0);
  SK_TRY_ASSIGN(const Layer layer, Layer::of(c));
  SK_TRY_ASSIGN(OutputStage stage, output_stage(layer.operands()));
  ConvRows rows(layer);
  rows.input_zero_point = input.quant.zero_point();
  return with_8bit(input.dtype, [&]<typename T>(T) {
    return make_kernel([rows = std::move(rows), stage = std::move(stage), batches = layer.batches,
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
