// AddressSpace: which ranges of a device's address space are free.
// Called by clients of kernel drivers that let user space choose addresses, and by the emulations of those drivers.
// Must not know: what the ranges are for.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"

namespace skillet {

class AddressSpace {
 public:
  // Manages [start, end), in multiples of `alignment` bytes.
  AddressSpace(uint64_t start, uint64_t end, uint64_t alignment);

  // The lowest free range of `size_bytes`, rounded up to the alignment; an error if there is none.
  Result<uint64_t> take(uint64_t size_bytes);
  // Takes the range at `address`, a multiple of the alignment; false if not all of it is free.
  bool take_at(uint64_t address, uint64_t size_bytes);
  // Frees a range that was taken with this size.
  void give_back(uint64_t address, uint64_t size_bytes);

 private:
  using Ranges = std::map<uint64_t, uint64_t>;
  void cut(Ranges::iterator range, uint64_t address, uint64_t size_bytes);

  uint64_t alignment_;
  Ranges free_;  // start -> end, never adjacent
};

}  // namespace skillet
