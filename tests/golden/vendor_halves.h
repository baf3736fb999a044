// Cases of 16-bit floats of the RK3576's vendor compiler: inputs whose results are exact in any order of summation, and
// those results, to compare boards with. Called by vendor_capture.cpp and its tests.
// Must not know: captures, simulators.
#pragma once

#include "vendor_case.h"

namespace skillet::golden {

// Returns the bits of a value that is exact in half precision.
uint16_t half_of(double value);
// Returns -1, 0 and 1, in a fixed order.
Bytes half_inputs(size_t size_bytes);
// Returns a convolution's output buffer, which contained `before`, in surfaces of eight channels.
Result<Bytes> half_results(const VendorOp& op, const FloatConv& conv, const Bytes& input, Bytes before);

}  // namespace skillet::golden
