// tanh and sigmoid of 16 bits, as the chip has them in hardware: straight lines between the values of a table.
// Called by operation.cpp.
// Must not know: registers, memory.
#pragma once

#include <cstdint>

namespace skillet::sim::ethosu {

// `value` is the operand times 3 * 2^12; the result has 15 bits behind the point. Inferred: the specification does not
// say what the hardware computes; these are the values of TensorFlow Lite's reference kernels, whose operand has that
// odd scale too.
int32_t hardware_sigmoid(int64_t value);
int32_t hardware_tanh(int64_t value);

}  // namespace skillet::sim::ethosu
