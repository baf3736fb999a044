// Runs a tiny network on a device and on the CPU, to check that the device computes.
// Called by `skillet doctor`, before it reports a device as ready.
// Must not know: which device.
#pragma once

#include <string>

#include "base/result.h"
#include "runtime/device_context.h"

namespace skillet::tools {

struct SelfTest {
  std::string what;  // kind of test: "convolution"
  double create_ms = 0, run_ms = 0;
  int largest_difference = 0;  // to the CPU kernels, in steps of the output
};

// A convolution of one channel with a 2x2 kernel, or RELU on a chip without convolutions. Error: it did not run on the
// device, or differs from the CPU kernels by more than one step (the chip's own rounding).
Result<SelfTest> self_test(const runtime::Target& target);

}  // namespace skillet::tools
