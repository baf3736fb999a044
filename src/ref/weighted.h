// What the ops with weights share: multipliers from scales, bias, output limits, weights widened to int16 rows.
// Called by the convolutions and the fully connected layer.
// Must not know: windows, padding.
#pragma once

#include "base/gemm.h"
#include "ref/kernel.h"

namespace skillet::ref {

// How the 32-bit sums of one op become its 8-bit output; one element per output channel.
struct OutputStage {
  std::vector<int32_t> bias, multiplier, shift;
  int32_t zero_point = 0;
  Range range;

  // For the channels from `first` on.
  gemm::Requantize from(size_t first) const {
    return {.bias = bias.data() + first,
            .multiplier = multiplier.data() + first,
            .shift = shift.data() + first,
            .output_zero_point = zero_point,
            .clamp_min = range.min,
            .clamp_max = range.max};
  }
};

// Operands of an 8-bit op with weights; `bias` may be absent.
struct WeightedOp {
  const Context& context;
  size_t input = 0, filter = 1, bias = 2;
  size_t channels = 0;  // of the output
  ir::Activation activation = ir::Activation::none;
  bool float_product =
      false;  // input scale * filter scale is rounded to float, as TFLite does where a filter has one scale
};

// Multipliers as TFLite's PopulateConvolutionQuantizationParams (int8 convolutions) and
// GetQuantizedConvolutionMultipler (uint8, and fully connected layers with one filter scale), which differ in how they
// round. Error when types or quantization do not fit the kernels.
Result<OutputStage> output_stage(const WeightedOp& op);

// CONV_2D of one group where byte_gemm::available().
Prepare prepare_byte_conv_2d;
// CONV_2D on any CPU: sums of products of 16 bits.
Prepare prepare_wide_conv_2d;

// Constant 8-bit filter as int16 with its zero point subtracted: `rows` rows of `row_elems`, each padded with zeros to
// `stride` elements.
std::vector<int16_t> widen_rows(const ir::Tensor& filter, size_t rows, size_t row_elems, size_t stride);

}  // namespace skillet::ref
