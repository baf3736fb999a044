// CApiBuffers: makes memory of skillet_buffer_alloc() that holds host tensors accessible to our device.
// Called by Kernel, with the device locked.
// Must not know: tensors, graphs; the C library, except by its symbol in the process.
#pragma once

#include <span>
#include <vector>

#include "runtime/device_context.h"
#include "skillet/skillet.h"

namespace skillet::delegate {

class CApiBuffers {
 public:
  CApiBuffers() = default;
  ~CApiBuffers();
  CApiBuffers(const CApiBuffers&) = delete;
  CApiBuffers& operator=(const CApiBuffers&) = delete;

  // Finds libskillet_c in the process, unless already found. Without it the functions below do nothing.
  void find_library();
  // Drops buffers that the application has freed, so that other memory at the same address is not taken for them.
  void drop_freed(runtime::DeviceContext& context);
  // Call after drop_freed(). Imports the buffer that contains `bytes`, if there is one and it is new. Otherwise
  // allocates nothing.
  void import(runtime::DeviceContext& context, std::span<const uint8_t> bytes);
  void release(runtime::DeviceContext& context);

 private:
  struct Known {
    skillet_buffer_info info;
    bool imported = false;  // false: our device refused it; no second try
  };
  bool lives(const Known& known) const;

  decltype(&skillet_buffer_find) find_ = nullptr;
  void* library_ = nullptr;  // keeps find_ callable
  std::vector<Known> known_;
};

}  // namespace skillet::delegate
