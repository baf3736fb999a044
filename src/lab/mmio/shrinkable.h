// Shrinkable: bytes of this process mapped from a file that another process may truncate, or whose file system may be
// full. An access to such a page gets zeros from there on, instead of the signal that ends this process, and is
// counted. For all threads. Called by guest_memory.h and the server.
// Must not know: guests, what the bytes are.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace skillet::mmio {

class Shrinkable {
 public:
  Shrinkable() = default;
  ~Shrinkable() { forget(); }
  Shrinkable(Shrinkable&& other) noexcept;
  Shrinkable& operator=(Shrinkable&& other) noexcept;

  // Watches `bytes` until forget(), which must come before they are unmapped. Error: there are too many ranges.
  Result<void> watch(std::span<uint8_t> bytes);
  void forget();

  // Number of accesses to missing pages since the process began.
  static uint64_t count();
  // Sets an eventfd that is written on such an access; -1: none.
  static void tell(int eventfd);

 private:
  int slot_ = -1;
};

}  // namespace skillet::mmio
