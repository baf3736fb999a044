// Sigmoid and hyperbolic tangent of 16-bit fixed-point values, as gemmlowp computes them.
// Called by the integer LSTM.
// Must not know: tensors.
#pragma once

#include <cstdint>

namespace skillet::ref {

// `x` has `integer_bits` integer bits (0..6); the result has none (raw 2^15 is 1).
int16_t fixed_logistic(int16_t x, int integer_bits);
int16_t fixed_tanh(int16_t x, int integer_bits);

}  // namespace skillet::ref
