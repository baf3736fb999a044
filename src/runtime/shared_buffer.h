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
  int dmabuf = -1;      // owned; none if the caller has the view
  uint64_t serial = 0;  // unique in the process, also after the address was reused
  size_t holders = 0;   // number of runs that use it: it cannot be freed
};

// The shared buffers of one device file.
class SharedBuffers {
 public:
  SharedBuffers();
  ~SharedBuffers();  // closes the descriptors; the memory goes with the device
  SharedBuffers(const SharedBuffers&) = delete;
  SharedBuffers& operator=(const SharedBuffers&) = delete;

  Result<SharedBuffer> alloc(kernels::Device& device, uint64_t size_bytes);
  // Imports memory of another driver. `dmabuf` remains the caller's; its memory is mapped and stays alive until free().
  Result<SharedBuffer> import(kernels::Device& device, int dmabuf);
  // Imports memory of another device of this process. `dmabuf` and `bytes` remain the caller's; `bytes` is the view
  // that find() will look up. The caller calls free() before that view ends.
  Result<void> import(kernels::Device& device, int dmabuf, std::span<uint8_t> bytes);
  // `start`: the first byte, as returned by alloc() or passed to import(). Error: no buffer starts there, or a run uses
  // it.
  Result<void> free(kernels::Device& device, const uint8_t* start);
  // The buffer that contains all of `bytes`; null: none.
  const SharedBuffer* find(std::span<const uint8_t> bytes) const;
  // The same among buffers from alloc() of any device, thread-safe and without allocating.
  static std::optional<SharedBuffer> find_anywhere(std::span<const uint8_t> bytes);
  // Keeps the buffer that find_anywhere() finds from being freed until release(). Returns its serial; 0: there is none.
  static uint64_t hold(std::span<const uint8_t> bytes);
  static void release(uint64_t serial);

 private:
  static SharedBuffer* any(std::span<const uint8_t> bytes);
  Result<SharedBuffer> take(const uint8_t* start);
  void add(SharedBuffer& buffer);

  std::map<const uint8_t*, SharedBuffer> buffers_;  // by first byte; changed under the lock of find_anywhere()
  SharedBuffers* next_ = nullptr;                   // in the list of all SharedBuffers
  OwnProcess process_;                              // the process whose list it is in
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
