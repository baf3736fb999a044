// For tests with random graphs: random numbers, and a device that fails on demand.
// Called by random_graphs_test.cpp and support_property_test.cpp.
// Must not know: what the tests check.
#pragma once

#include "graph/ir/testing/random_ops.h"
#include "kernels/api/forwarding_device.h"

namespace skillet {

// A simulated chip whose jobs fail from number `fail_from` on (counting from 0).
class FailingDevice : public kernels::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<kernels::Fence> submit(std::span<const kernels::JobId> jobs) override {
    kernels::Fence last = 0;
    for (const kernels::JobId& job : jobs) {
      if (submits++ >= fail_from) return error(ErrorCode::device, "the chip is on fire");
      SK_TRY_ASSIGN(last, ForwardingDevice::submit({&job, 1}));
    }
    return last;
  }

  int fail_from = 1 << 30;
  int submits = 0;
};

}  // namespace skillet
