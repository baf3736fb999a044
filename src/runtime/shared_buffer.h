// Memory with a CPU pointer and a dma-buf descriptor that a device reads and writes in place.
// Called by LoadedProgram (which looks for tensors in it) and the C interface.
// Must not know: tensors.
#pragma once

#include <map>
#include <span>

#include "base/result.h"
#include "uapi/device.h"

namespace skillet::runtime {

struct SharedBuffer {
  uapi::Handle handle = 0;
  uint64_t address = 0;  // on the device
  std::span<uint8_t> bytes;
  int dmabuf = -1;  // owned
};

// The shared buffers of one device file.
class SharedBuffers {
 public:
  SharedBuffers() = default;
  ~SharedBuffers();  // closes the descriptors; the memory goes with the device
  SharedBuffers(const SharedBuffers&) = delete;
  SharedBuffers& operator=(const SharedBuffers&) = delete;

  Result<SharedBuffer> alloc(uapi::Device& device, uint64_t size_bytes);
  // `start`: the first byte, as alloc() gave it.
  Result<void> free(uapi::Device& device, const uint8_t* start);
  // The buffer that all of `bytes` lie in; null: none.
  const SharedBuffer* find(std::span<const uint8_t> bytes) const;

 private:
  std::map<const uint8_t*, SharedBuffer> buffers_;  // by first byte
};

}  // namespace skillet::runtime
