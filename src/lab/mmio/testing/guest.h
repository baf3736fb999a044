// Guest: a guest kernel's memory and interrupt line, for tests of devices without a kernel.
// Called by tests of lab/mmio/.
// Must not know: any device.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "lab/mmio/device.h"

namespace skillet::mmio {

inline constexpr uint64_t kMemoryBytes = 16 << 20;

// A guest with memory at address 0 and a device on a line.
struct Guest {
  Guest() {
    const int fd = ::memfd_create("guest", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(fd, kMemoryBytes), 0);
    EXPECT_TRUE(memory.set({{.guest_address = 0, .size_bytes = kMemoryBytes, .user_address = 1 << 30, .fd = fd}}).ok());
  }
  Surroundings surroundings() {
    return {.guest = memory, .set_interrupt = [this](bool is_high) { line = is_high; }};
  }
  uint32_t& word(uint64_t address) { return *reinterpret_cast<uint32_t*>(memory.at(address, 4).data()); }
  GuestMemory memory;
  std::atomic<bool> line = false;
};

template <typename Predicate>
bool comes_true(Predicate predicate) {
  for (int i = 0; i < 2000; ++i) {
    if (predicate()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace skillet::mmio
