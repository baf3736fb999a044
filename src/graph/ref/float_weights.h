// Weights or a bias in float32: constant, or computed by a previous op, e.g. a DEQUANTIZE of 16-bit weights.
// Called by the float kernels with weights.
// Must not know: windows.
#pragma once

#include "graph/ref/kernel.h"

namespace skillet::ref {

class FloatWeights {
 public:
  // Loads an operand of `c`; `count` zeros if it is left out.
  static Result<FloatWeights> of(const Context& c, size_t input, size_t count);
  const float* in(Tensors t) const { return values_.empty() ? elements<const float>(t[tensor_]) : values_.data(); }

 private:
  std::vector<float> values_;  // copies, because constants may be unaligned in model files
  size_t tensor_ = 0;
};

}  // namespace skillet::ref
