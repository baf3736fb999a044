// Float operations with int8 weights, as a model quantized in its weights alone has them: the input is quantized when
// the operation runs, the sums of products are integers, and the result is float again. Called by the operations with
// weights. Must not know: what calls the kernels.
#pragma once

#include "graph/ref/float_weights.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {

// Whether the op has a float32 input and 8-bit weights.
bool is_hybrid(const Context& c, size_t input = 0, size_t weights = 1);

// How values were quantized: value = scale * (byte - zero_point).
struct InputQuant {
  float scale = 1;
  int32_t zero_point = 0;
};
// Bytes of the range of `in`, which are rounded as TFLite does; without `asymmetric` the zero point is 0. Where a value
// is not finite the scale is not a number, and the bytes are 0.
InputQuant quantize_input(const float* in, size_t count, bool asymmetric, int8_t* out);

// How integer sums become floats. One scale and one bias for each output channel.
struct FloatStage {
  std::vector<float> scales;
  bool uniform = false;  // all of them are the same
  FloatWeights bias;
  FloatRange range;

  // In which order TFLite multiplies a sum with the two scales; by_fours: a vector of four channels with that of the
  // channel first, what is left of them with that of the input.
  enum class Order : uint8_t { scales_first, channel_first, by_fours };
  void finish(const int32_t* sums, float input_scale, Order order, const float* added, float* out) const;
};
// Error where the weights are not int8 constants that are quantized symmetrically.
Result<FloatStage> float_stage(const Context& c, size_t channels, ir::Activation activation);

// Error unless operand `weights` is a constant of int8 with zero points of 0 and one scale, or one for each channel.
Result<void> need_hybrid_weights(const Context& c, size_t weights, size_t channels);

Prepare prepare_hybrid_conv_2d, prepare_hybrid_depthwise_conv_2d, prepare_hybrid_fully_connected;

}  // namespace skillet::ref
