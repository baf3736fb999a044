// QUANTIZE between int8 and uint8 that keeps the real values.
// Called by passes and drivers.
// Must not know: operations, chips.
#pragma once

#include "graph/ir/graph.h"

namespace skillet::ir {

// True if the bytes of `from` and `to` differ by 128 for equal real values.
inline bool only_changes_sign(const Tensor& from, const Tensor& to) {
  if (!is_8bit(from.dtype) || !is_8bit(to.dtype) || from.dtype == to.dtype) return false;
  const int32_t step = to.dtype == DType::uint8 ? 128 : -128;
  return from.quant.scales.size() == 1 && from.quant.scales == to.quant.scales &&
         to.quant.zero_point() == from.quant.zero_point() + step;
}

}  // namespace skillet::ir
