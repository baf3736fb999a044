// CApiBuffers: memory of skillet_buffer_alloc() that tensors of the host are in, made reachable for our device.
// Called by Kernel, under the lock of the device.
// Must not know: tensors, graphs; the C library other than by looking for it in the process.
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

  // Looks for libskillet_c in the process, unless it was found before. Without it nothing below does anything.
  void find_library();
  // Takes back what the application has freed since, so that nothing else at the same address passes for it.
  void drop_freed(runtime::DeviceContext& context);
  // After drop_freed(): imports the buffer that `bytes` are in, when there is one and it is new. Nothing is allocated
  // otherwise.
  void import(runtime::DeviceContext& context, std::span<const uint8_t> bytes);
  void release(runtime::DeviceContext& context);

 private:
  struct Known {
    skillet_buffer_info info;
    bool imported = false;  // false: our device refused it; not tried again
  };
  bool lives(const Known& known) const;

  decltype(&skillet_buffer_find) find_ = nullptr;
  void* library_ = nullptr;  // keeps find_ callable
  std::vector<Known> known_;
};

}  // namespace skillet::delegate
