// submit(): submits a job of inline words once.
// Called by tests.
// Must not know: any single kernel driver.
#pragma once

#include <algorithm>

#include "kernels/api/device.h"

namespace skillet::kernels {

inline Result<Fence> submit(Device& device, std::span<const uint32_t> words, std::span<const JobBuffer> buffers) {
  SK_TRY_ASSIGN(const Handle commands, device.alloc_commands(words.size_bytes()));
  SK_TRY_ASSIGN(const auto bytes, device.map(commands));
  std::ranges::copy(std::as_bytes(words), std::as_writable_bytes(bytes).begin());
  SK_TRY_ASSIGN(const JobId job, device.prepare({.name = "test",
                                                 .commands = {{commands, 0, words.size_bytes()}},
                                                 .buffers = {buffers.begin(), buffers.end()}}));
  auto fence = device.submit({&job, 1});
  device.release(job);
  SK_TRY(device.free(commands));
  return fence;
}

}  // namespace skillet::kernels
