// What the LSTM kernels share: sizes, and where the operands are.
// Called by the kernels of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM.
// Must not know: arithmetic.
#pragma once

#include "graph/ir/lstm_operands.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {

struct LstmSizes {
  size_t steps = 1, batch = 1, inputs = 0, cells = 0, outputs = 0;
  bool time_major = true;

  // Element of step `s`, batch `b` of a tensor with `width` elements each.
  size_t at(size_t s, size_t b, size_t width) const { return (time_major ? s * batch + b : b * steps + s) * width; }
};

LstmSizes lstm_sizes(const Context& context);

Prepare prepare_float_lstm, prepare_integer_lstm;

}  // namespace skillet::ref
