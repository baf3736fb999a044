// A tiny network of our own, run on a device and on the CPU: does this device compute?
// Called by `skillet doctor`, before it calls a device ready.
// Must not know: which device.
#pragma once

#include <string>

#include "base/result.h"
#include "runtime/device_context.h"

namespace skillet::tools {

struct SelfTest {
  std::string what;  // was run: "convolution"
  double create_ms = 0, run_ms = 0;
  int largest_difference = 0;  // from the CPU kernels, in steps of the output
};

// A convolution of one channel with a 2x2 kernel, or RELU on a chip without convolutions. Error: it did not run on the
// device, or computed something else than the CPU kernels (one step of difference is the chip's own rounding).
Result<SelfTest> self_test(const runtime::Target& target);

}  // namespace skillet::tools
