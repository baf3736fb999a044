#include "base/address_space.h"

#include <algorithm>
#include <iterator>

#include "base/int_math.h"

namespace skillet {

AddressSpace::AddressSpace(uint64_t start, uint64_t end, uint64_t alignment) : alignment_(alignment) {
  free_[start] = end;
}

// Removes bytes within `range` from it.
void AddressSpace::cut(Ranges::iterator range, uint64_t address, uint64_t size_bytes) {
  const auto [start, end] = *range;
  const uint64_t taken_end = address + align_up(size_bytes, alignment_);
  if (start < address) {
    range->second = address;
  } else {
    free_.erase(range);
  }
  if (taken_end < end) free_[taken_end] = end;
}

Result<uint64_t> AddressSpace::take(uint64_t size_bytes) {
  if (size_bytes == 0) return error(ErrorCode::invalid_argument, "a buffer of 0 bytes");
  uint64_t largest = 0;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [start, end] = *it;
    largest = std::max(largest, end - start);
    if (size_bytes > end - start) continue;
    cut(it, start, size_bytes);
    return start;
  }
  return error(ErrorCode::out_of_range, "no device addresses left for {} bytes (largest free range: {} bytes)",
               size_bytes, largest);
}

bool AddressSpace::take_at(uint64_t address, uint64_t size_bytes) {
  const auto next = free_.upper_bound(address);
  if (next == free_.begin()) return false;
  const auto range = std::prev(next);
  if (address >= range->second || size_bytes > range->second - address) return false;
  cut(range, address, size_bytes);
  return true;
}

void AddressSpace::give_back(uint64_t address, uint64_t size_bytes) {
  uint64_t end = address + align_up(size_bytes, alignment_);
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == address) {
    std::prev(next)->second = end;
  } else {
    free_[address] = end;
  }
}

}  // namespace skillet
