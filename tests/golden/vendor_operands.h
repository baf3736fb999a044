// Operands of whole tensors: 64 bytes with an addend, a factor and its shifts. Cases lack those of slopes and products;
// they follow from what their programs do with the results.
// Called by vendor_case.cpp, vendor_capture.cpp, vendor_run.cpp. Must not know: buffers, simulators.
#pragma once

#include <cstdint>

#include "vendor_files.h"

namespace skillet::golden {

constexpr size_t kOperandBytes = 64;
constexpr double kSlope = 0.1;        // of the cases with one; those of a root end at 0 and have any
constexpr unsigned kSlopeShift = 11;  // by which a convolution's sums are larger where OUT_CVT follows a slope

bool has_slope(const Words& words);
bool multiplies(const Words& words);

Bytes operand_tensor(int32_t addend, int16_t factor, uint32_t shifts);
// What is below 0 is not as much larger: its factor brings that.
uint32_t slope_shifts(uint32_t shifts);
Bytes slope_operand(double larger);

}  // namespace skillet::golden
