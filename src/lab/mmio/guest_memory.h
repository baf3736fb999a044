// GuestMemory: the memory of a guest kernel, as the front end of vhost-user shares it. AddressSpace: the device
// addresses of a page table in it, as contiguous bytes of this process.
// Called by the devices of lab/mmio/.
// Must not know: any device, virtqueues.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/mmio/shrinkable.h"
#include "sim/sim.h"

namespace skillet::mmio {

inline constexpr uint64_t kPageBytes = 4096;

// A part of the guest's physical memory: `size_bytes` at `guest_address`, from `file_offset` of a file.
struct Region {
  uint64_t guest_address = 0, size_bytes = 0, user_address = 0, file_offset = 0;
  int fd = -1;               // owned
  uint8_t* bytes = nullptr;  // mapped
};

class GuestMemory {
 public:
  GuestMemory() = default;
  ~GuestMemory();
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;

  // Takes the regions' descriptors, and closes them on failure.
  Result<void> set(std::vector<Region> regions);
  // The bytes at a guest physical address; empty if not all of them are memory.
  std::span<uint8_t> at(uint64_t guest_address, uint64_t size_bytes) const;
  // The bytes from a guest physical address to the end of its region; empty if the address is not memory.
  std::span<uint8_t> from(uint64_t guest_address) const;
  // Like at(), by the front end's own address.
  std::span<uint8_t> at_user(uint64_t user_address, uint64_t size_bytes) const;
  // A word that the guest may write concurrently.
  std::optional<uint32_t> word(uint64_t guest_address) const;
  // The place of a page in its file; no descriptor if it is not memory.
  Region page(uint64_t guest_address) const;
  // Name of a region whose file is now shorter than before; empty: none.
  std::string cut_short() const;

 private:
  void clear();
  std::vector<Region> regions_;
  std::vector<Shrinkable> watched_;
};

// A page of device memory: its index, guest address and rights.
struct Page {
  uint32_t index = 0;
  uint64_t guest_address = 0;
  bool is_writable = false;
  bool operator==(const Page&) const = default;
};

// The 4 GiB of device addresses of one page table. The guest's own pages are mapped contiguously, so that the guest
// sees a device's writes, and a buffer of many pages is one range of bytes. May be used by several threads.
class AddressSpace {
 public:
  AddressSpace() = default;
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Number of calls of revoke().
  uint64_t epoch() const;
  // Maps exactly these pages, in ascending order, as a simulator expects. Error: a page is not the guest's memory, the
  // pages need more mappings than a process may have, or revoke() was called since `epoch`.
  Result<sim::Memory> map(const GuestMemory& guest, std::span<const Page> pages, uint64_t epoch);
  // Unmaps everything. A thread that still uses the result of map() accesses anonymous pages.
  void revoke();

 private:
  Result<void> reserve();
  // Maps those of consecutive pages that are not mapped yet.
  Result<void> put(const GuestMemory& guest, std::span<const Page> pages);
  // Number of these pages, from the first, that are contiguous in the guest's memory too.
  size_t together(const GuestMemory& guest, std::span<const Page> pages) const;
  void forget_mappings();

  mutable std::mutex mutex_;
  uint64_t epoch_ = 0;
  uint8_t* base_ = nullptr;
  Shrinkable watched_;
  std::vector<Page> mapped_;  // by index
  size_t mappings_ = 0;
};

// The pages of a two-level table with 1024 words each, whose bit 0 is the valid bit. `address_of`: the guest address in
// a directory entry; `page_of`: the page in a table entry.
template <typename AddressOf, typename PageOf>
std::vector<Page> walk(const GuestMemory& guest, uint64_t directory, AddressOf address_of, PageOf page_of) {
  constexpr uint32_t kEntries = 1024, kValid = 1;
  std::vector<Page> pages;
  for (uint32_t i = 0; i < kEntries; ++i) {
    const std::optional<uint32_t> table = guest.word(directory + uint64_t{i} * sizeof(uint32_t));
    if (!table || (*table & kValid) == 0) continue;
    for (uint32_t k = 0; k < kEntries; ++k) {
      const std::optional<uint32_t> entry = guest.word(address_of(*table) + uint64_t{k} * sizeof(uint32_t));
      if (!entry || (*entry & kValid) == 0) continue;
      pages.push_back(page_of(*entry));
      pages.back().index = i * kEntries + k;
    }
  }
  return pages;
}

}  // namespace skillet::mmio
