// AddressSpace: first-fit allocator of device address ranges, as user space does it for softpinned buffers.
// Called by uapi/sim.cpp and, later, the devices whose drivers let user space choose addresses.
// Must not know: what the ranges are for.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"

namespace skillet::uapi {

class AddressSpace {
 public:
  // Hands out [start, end) in multiples of `alignment` bytes.
  AddressSpace(uint64_t start, uint64_t end, uint64_t alignment);

  // The lowest free range of `size_bytes`, rounded up to the alignment; an error when there is none.
  Result<uint64_t> take(uint64_t size_bytes);
  // Returns what take() gave for this size.
  void give_back(uint64_t address, uint64_t size_bytes);

 private:
  uint64_t alignment_;
  std::map<uint64_t, uint64_t> free_;  // start -> end, never adjacent
};

}  // namespace skillet::uapi
