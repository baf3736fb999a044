// Softmax over rows of 8-bit values in the 32-bit fixed point of TFLite's reference kernel.
// Called by the kernels of SOFTMAX, LOG_SOFTMAX and DIV; also of use to code that compares single steps of it.
// Must not know: tensors.
#pragma once

#include <cstdint>

namespace skillet::ref {

// exp(x) for x <= 0. `x` has 5 integer bits (raw 2^26 is 1), the result none (raw 2^31 is 1).
int32_t exp_on_negative_values(int32_t x);

// 1 / (1 + x) for x in [0, 1), both Q31.
int32_t reciprocal_of_one_plus(int32_t x);

struct Reciprocal {
  int32_t value = 0;               // Q31, in [1/2, 1]
  int32_t num_bits_over_unit = 0;  // 1 / x is value / 2^num_bits_over_unit
};
// 1 / x for x > 0 with `integer_bits` integer bits.
Reciprocal reciprocal(int32_t x, int integer_bits);

}  // namespace skillet::ref
