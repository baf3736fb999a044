// 1 / sqrt(x) of integers in fixed point.
// Called by RSQRT and L2_NORMALIZATION.
// Must not know: tensors.
#pragma once

#include "base/fixed_point.h"

namespace skillet::ref {

// 1 / sqrt(x) as a multiplier, for x >= 0 (0 counts as 1). As TFLite's GetInvSqrtQuantizedMultiplierExp.
QuantizedMultiplier inverse_sqrt(int32_t x);

}  // namespace skillet::ref
