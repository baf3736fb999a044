// Shared by the ops with weights: multipliers from scales, bias, output limits, weights widened to int16 rows.
// Called by the convolutions and the fully connected layer.
// Must not know: windows, padding.
#pragma once

#include "graph/ref/kernel.h"
#include "graph/ref/window.h"
#include "simd/gemm.h"

namespace skillet::ref {

// Converts the 32-bit sums of one op to its 8-bit output; one element per output channel.
struct OutputStage {
  std::vector<int32_t> bias, multiplier, shift;
  int32_t zero_point = 0;
  Range range;

  // The stage for the channels from `first` on.
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
  size_t channels = 0;  // output channels
  ir::Activation activation = ir::Activation::none;
  bool float_product =
      false;  // input scale * filter scale is rounded to float, as in TFLite for a filter with one scale
};

// A CONV_2D, or a FULLY_CONNECTED as a 1x1 convolution over one row of pixels.
struct Layer {
  const Context& context;
  Window window;
  size_t batches = 1, channels_in = 0, channels_out = 0;
  size_t group_in = 0;  // input channels that an output channel reads
  ir::Activation activation = ir::Activation::none;
  bool float_product = false;

  static Result<Layer> of(const Context& c);
  WeightedOp operands() const {
    return {.context = context, .channels = channels_out, .activation = activation, .float_product = float_product};
  }
};

// Multipliers as in TFLite's PopulateConvolutionQuantizationParams (int8 convolutions) and
// GetQuantizedConvolutionMultipler (uint8, and fully connected layers with one filter scale), which differ in rounding.
// Error if types or quantization do not fit the kernels.
Result<OutputStage> output_stage(const WeightedOp& op);

// sum * multiplier * 2^(shift - 31), halves up, modulo 2^32, for |sum| < 2^47 and a shift of -31..14. Larger sums, of a
// bias that no model needs, wrap.
constexpr int32_t scale_once(int64_t sum, QuantizedMultiplier by) {
  constexpr int kLow = 16;  // bits of the sum, so that no product exceeds 64 bits
  const int64_t high = sum >> kLow, low = sum & 0xffff;
  const int shift = 31 - by.shift;
  const int64_t carried = (low * by.multiplier + (int64_t{1} << (shift - 1))) >> kLow;
  const uint64_t product = static_cast<uint64_t>(high) * static_cast<uint64_t>(by.multiplier);
  return static_cast<int32_t>(static_cast<int64_t>(product + static_cast<uint64_t>(carried)) >> (shift - kLow));
}

// The same for 64-bit sums and int16 outputs.
struct WideStage {
  std::vector<int64_t> bias;
  std::vector<QuantizedMultiplier> by;
  bool sums_of_32_bits = false;   // modulo 2^32, rounded twice
  bool whole_multiplier = false;  // all 31 bits, not 16, and rounded once
  Range range;

  int16_t finish(int64_t sum, size_t channel) const {
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(bias[channel]));
    if (whole_multiplier) return static_cast<int16_t>(std::clamp(scale_once(sum, by[channel]), range.min, range.max));
    const int32_t scaled = sums_of_32_bits ? multiply_by_quantized_multiplier(static_cast<int32_t>(sum), by[channel])
                                           : multiply_wide_by_quantized_multiplier(sum, by[channel]);
    return static_cast<int16_t>(std::clamp(scaled, range.min, range.max));
  }
};
// For int16 activations with int8 weights. The bias has 32 or 64 bits, which decides how the sums are rounded.
Result<WideStage> wide_stage(const WeightedOp& op);
// The operations with weights and int16 input.
Prepare prepare_int16_layer, prepare_int16_depthwise_conv_2d, prepare_int16_transpose_conv;
// The forward convolution of a TRANSPOSE_CONV: its input is this op's output.
Result<Window> transposed_window(const Context& c);

// A Layer of one group, if byte_gemm::available().
Prepare prepare_byte_layer;
// The same on any CPU: sums of 16-bit products.
Prepare prepare_wide_layer;

// A constant 8-bit filter as int16 with its zero point subtracted: `rows` rows of `row_elems`, each padded with zeros
// to `stride` elements.
std::vector<int16_t> widen_rows(const ir::Tensor& filter, size_t rows, size_t row_elems, size_t stride);

}  // namespace skillet::ref
