// Memory with a CPU pointer and a dma-buf descriptor that a device reads and writes in place.
// Called by LoadedProgram (which looks for tensors in it), the C interface and the delegate (which imports).
// Must not know: tensors.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/own_process.h"
#include "base/result.h"
#include "kernels/api/device.h"

namespace skillet::runtime {

struct SharedBuffer {
  kernels::Handle handle = 0;
  uint64_t address = 0;  // on the device
  std::span<uint8_t> bytes;
  int dmabuf = -1;      // owned; none where the caller has the view
  uint64_t serial = 0;  // no two buffers of the process have the same, even one after the other at one address
  size_t holders = 0;   // runs that use it: it cannot be freed
};

// The shared buffers of one device file.
class SharedBuffers {
 public:
  SharedBuffers();
  ~SharedBuffers();  // closes the descriptors; the memory goes with the device
  SharedBuffers(const SharedBuffers&) = delete;
  SharedBuffers& operator=(const SharedBuffers&) = delete;

  Result<SharedBuffer> alloc(kernels::Device& device, uint64_t size_bytes);
  // Memory of another driver: `dmabuf` stays the caller's; what it refers to is mapped, and lives until free().
  Result<SharedBuffer> import(kernels::Device& device, int dmabuf);
  // Memory of another device of this process: `dmabuf` stays the caller's, and so does `bytes`, which is the view of it
  // that find() will be asked about. The caller calls free() before that view ends.
  Result<void> import(kernels::Device& device, int dmabuf, std::span<uint8_t> bytes);
  // `start`: the first byte, as alloc() gave it or import() got it. Error: no buffer starts there, or a run uses it.
  Result<void> free(kernels::Device& device, const uint8_t* start);
  // The buffer that all of `bytes` are in; null: none.
  const SharedBuffer* find(std::span<const uint8_t> bytes) const;
  // The same among what alloc() gave for any device, from any thread, without allocating.
  static std::optional<SharedBuffer> find_anywhere(std::span<const uint8_t> bytes);
  // Keeps what find_anywhere() finds from being freed until release(). Returns its serial; 0: there is none.
  static uint64_t hold(std::span<const uint8_t> bytes);
  static void release(uint64_t serial);

 private:
  static SharedBuffer* any(std::span<const uint8_t> bytes);
  Result<SharedBuffer> take(const uint8_t* start);
  void add(SharedBuffer& buffer);

  std::map<const uint8_t*, SharedBuffer> buffers_;  // by first byte; changed under the lock of find_anywhere()
  SharedBuffers* next_ = nullptr;                   // in the list of all that there are
  OwnProcess process_;                              // in whose list it is
};

// The shared buffers that one run uses, held until it has ended.
class HeldBuffers {
 public:
  HeldBuffers() = default;
  ~HeldBuffers() { clear(); }
  HeldBuffers(const HeldBuffers&) = delete;
  HeldBuffers& operator=(const HeldBuffers&) = delete;

  void add(std::span<const uint8_t> bytes);
  void clear();

 private:
  std::vector<uint64_t> serials_;
};

}  // namespace skillet::runtime
