// Float operations with int8 weights (models with only the weights quantized): the input is quantized when the
// operation runs, the sums of products are integers, and the result is float. Called by the operations with weights.
// Must not know: the callers of the kernels.
#pragma once

#include "graph/ref/float_weights.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {

// Whether the op has a float32 input and 8-bit weights.
bool is_hybrid(const Context& c, size_t input = 0, size_t weights = 1);

// Quantization of values: value = scale * (byte - zero_point).
struct InputQuant {
  float scale = 1;
  int32_t zero_point = 0;
};
// Quantizes `in` by its range, with TFLite's rounding; without `asymmetric` the zero point is 0. If a value is not
// finite, the scale is NaN and the bytes are 0.
InputQuant quantize_input(const float* in, size_t count, bool asymmetric, int8_t* out);

// Converts integer sums to floats. One scale and one bias for each output channel.
struct FloatStage {
  std::vector<float> scales;
  bool uniform = false;  // all scales are equal
  FloatWeights bias;
  FloatRange range;

  // Order in which TFLite multiplies a sum with the two scales. by_fours: vectors of four channels use the channel's
  // scale first, remaining channels use the input's first.
  enum class Order : uint8_t { scales_first, channel_first, by_fours };
  void finish(const int32_t* sums, float input_scale, Order order, const float* added, float* out) const;
};
// Error unless the weights, operand 1, are int8 constants with symmetric quantization. `bias`: the operand.
Result<FloatStage> float_stage(const Context& c, size_t channels, ir::Activation activation, size_t bias = 2);

// Error unless operand `weights` is an int8 constant with zero points of 0 and one scale, or one scale per channel.
Result<void> need_hybrid_weights(const Context& c, size_t weights, size_t channels);

Prepare prepare_hybrid_layer, prepare_hybrid_depthwise_conv_2d;  // the former: CONV_2D, FULLY_CONNECTED

}  // namespace skillet::ref
