// HARD_SWISH in the 16-bit fixed point of TFLite's reference kernel.
// Called by unary.cpp.
// Must not know: tensors.
#pragma once

#include <cstdint>

#include "graph/ir/quant.h"

namespace skillet::ref {

struct HardSwish {
  int32_t input_zero_point = 0, output_zero_point = 0;
  int16_t output_multiplier = 0, reluish_multiplier = 0;  // Q15
  int32_t output_exponent = 0, reluish_exponent = 0;      // output_exponent <= 0
};

HardSwish hard_swish_params(const ir::Quant& input, const ir::Quant& output);
// Quantized result, not yet clamped to the 8-bit type.
int32_t hard_swish(const HardSwish& params, int32_t value);

}  // namespace skillet::ref
