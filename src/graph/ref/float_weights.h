// Weights or a bias in float32: constant, or made by an op before, as a DEQUANTIZE that unpacks weights of 16 bits.
// Called by the float kernels with weights.
// Must not know: windows.
#pragma once

#include "graph/ref/kernel.h"

namespace skillet::ref {

class FloatWeights {
 public:
  // Of an operand of `c`; `count` zeros where it is left out.
  static Result<FloatWeights> of(const Context& c, size_t input, size_t count);
  const float* in(Tensors t) const { return values_.empty() ? elements<const float>(t[tensor_]) : values_.data(); }

 private:
  std::vector<float> values_;  // constants are in model files at any address
  size_t tensor_ = 0;
};

}  // namespace skillet::ref
