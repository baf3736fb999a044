// Cases of 16-bit floats of the RK3576's vendor compiler: inputs whose results are exact in any order of sums, and
// those results, for boards to be compared with. Called by vendor_capture.cpp and its tests.
// Must not know: captures, simulators.
#pragma once

#include "vendor_case.h"

namespace skillet::golden {

// Bits of a value that a half has exactly.
uint16_t half_of(double value);
// -1, 0 and 1, in a fixed order.
Bytes half_inputs(size_t size_bytes);
// What a convolution of them leaves in its output buffer, which held `before`, in surfaces of eight channels.
Result<Bytes> half_results(const VendorOp& op, const FloatConv& conv, const Bytes& input, Bytes before);

}  // namespace skillet::golden
