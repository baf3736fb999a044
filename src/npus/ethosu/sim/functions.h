// tanh and sigmoid of 16 bits in the chip's hardware: linear interpolation between the values of a table.
// Called by operation.cpp.
// Must not know: registers, memory.
#pragma once

#include <cstdint>

namespace skillet::sim::ethosu {

// `value` is the operand times 3 * 2^12; the result has 15 fraction bits. Inferred: the specification does not define
// the hardware's results. These are the values of TensorFlow Lite's reference kernels, whose operand has the same odd
// scale.
int32_t hardware_sigmoid(int64_t value);
int32_t hardware_tanh(int64_t value);

}  // namespace skillet::sim::ethosu
