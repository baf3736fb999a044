#include "interpose/address_map.h"

#include <cerrno>
#include <iterator>

namespace skillet::interpose {

int AddressMap::take_exactly(uint64_t address, uint64_t size_bytes) {
  if (address < kStart || address % kPageBytes != 0) return -EINVAL;
  if (address >= kEnd || size_bytes > kEnd - address) return -ENOSPC;
  const auto next = taken_.lower_bound(address);
  if (next != taken_.end() && next->first < address + size_bytes) return -ENOSPC;
  if (next != taken_.begin() && std::prev(next)->second > address) return -ENOSPC;
  taken_[address] = address + size_bytes;
  return 0;
}

int AddressMap::take_anywhere(uint64_t size_bytes, uint64_t& address) {
  uint64_t free_from = kStart;
  for (const auto& [start, end] : taken_) {
    if (start - free_from >= size_bytes) break;
    free_from = end;
  }
  if (size_bytes > kEnd - free_from) return -ENOSPC;
  address = free_from;
  taken_[address] = address + size_bytes;
  return 0;
}

}  // namespace skillet::interpose
