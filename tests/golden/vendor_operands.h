// Operands of whole tensors: 64 bytes with an addend, a factor and its shifts. Cases lack the operands of slopes and
// products; they follow from how their programs use the results.
// Called by vendor_case.cpp, vendor_capture.cpp, vendor_run.cpp. Must not know: buffers, simulators.
#pragma once

#include <cstdint>

#include "vendor_files.h"

namespace skillet::golden {

constexpr size_t kOperandBytes = 64;
constexpr double kSlope = 0.1;        // of the cases with one; those of a root end at 0, so any slope will do
constexpr unsigned kSlopeShift = 11;  // a convolution's sums are larger by this where OUT_CVT follows a slope

bool has_slope(const Words& words);
bool multiplies(const Words& words);

Bytes operand_tensor(int32_t addend, int16_t factor, uint32_t shifts);
// Values below 0 are not scaled up by the same factor: the operand's factor does that.
uint32_t slope_shifts(uint32_t shifts);
Bytes slope_operand(double larger);

}  // namespace skillet::golden
