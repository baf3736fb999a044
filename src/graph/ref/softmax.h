// Softmax over rows of 8-bit values in the 32-bit fixed point of TFLite's reference kernel, and over rows of int16.
// Called by the kernels of SOFTMAX, LOG_SOFTMAX and DIV, and by code that compares single steps of it.
// Must not know: tensors.
#pragma once

#include <cstdint>

#include "base/fixed_point.h"
#include "graph/ref/int16_table.h"

namespace skillet::ref {

// exp(x) for x <= 0. `x` has 5 integer bits (raw 2^26 is 1), the result has none (raw 2^31 is 1).
int32_t exp_on_negative_values(int32_t x);

// 1 / (1 + x) for x in [0, 1), both Q31.
int32_t reciprocal_of_one_plus(int32_t x);

struct Reciprocal {
  int32_t value = 0;               // Q31, in [1/2, 1]
  int32_t num_bits_over_unit = 0;  // 1 / x is value / 2^num_bits_over_unit
};
// 1 / x for x > 0 with `integer_bits` integer bits.
Reciprocal reciprocal(int32_t x, int integer_bits);

// Softmax of one row of int16: exp() and 1 / (1 + x) by tables.
struct Int16Softmax {
  Int16Table exp, reciprocal;  // for -10 .. 0, and for 0 .. 1
  QuantizedMultiplier input;   // to steps of 1/65535 of exp()'s input range

  Int16Softmax(float beta, float input_scale);
  void run(const int16_t* in, size_t depth, int16_t* out) const;
};

}  // namespace skillet::ref
