// Shrinkable: bytes of this process that are mapped from a file which another process may cut short, or whose file
// system may be full. Who touches such a page gets zeros from there on instead of the signal that ends this process,
// and that is counted. For all threads. Called by guest_memory.h and the server.
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

  // From now on until forget(), which comes before they are unmapped. Error: there are too many.
  Result<void> watch(std::span<uint8_t> bytes);
  void forget();

  // How often pages were not there, since the process began.
  static uint64_t count();
  // Written to (as an eventfd takes it) when they were not; -1: none.
  static void tell(int eventfd);

 private:
  int slot_ = -1;
};

}  // namespace skillet::mmio
