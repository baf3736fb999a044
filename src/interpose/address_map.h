// AddressMap: which ranges of a file's device address space are taken, by exact address or wherever there is room.
// Called by VirtualFile.
// Must not know: what is mapped.
#pragma once

#include <cstdint>
#include <map>

namespace skillet::interpose {

class AddressMap {
 public:
  static constexpr uint64_t kStart = 0x00400000, kEnd = uint64_t{1} << 32, kPageBytes = 4096;

  // Negative errnos. size_bytes is a multiple of the page.
  int take_exactly(uint64_t address, uint64_t size_bytes);
  int take_anywhere(uint64_t size_bytes, uint64_t& address);
  void give_back(uint64_t address) { taken_.erase(address); }

 private:
  std::map<uint64_t, uint64_t> taken_;  // start -> end
};

}  // namespace skillet::interpose
