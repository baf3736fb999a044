// GuestMemory: the memory of a guest kernel, as the front end of vhost-user hands it over; AddressSpace: the device
// addresses that a page table in it makes, as contiguous bytes of this process.
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

  // Takes the regions' descriptors, and closes them on failure too.
  Result<void> set(std::vector<Region> regions);
  // The bytes at a guest physical address; empty: not all of them are memory.
  std::span<uint8_t> at(uint64_t guest_address, uint64_t size_bytes) const;
  // The bytes from a guest physical address to the end of the memory that it is in; empty: it is no memory.
  std::span<uint8_t> from(uint64_t guest_address) const;
  // The same as at() by the address that the front end itself uses.
  std::span<uint8_t> at_user(uint64_t user_address, uint64_t size_bytes) const;
  // A word that the guest may write meanwhile.
  std::optional<uint32_t> word(uint64_t guest_address) const;
  // Where a page is in its file; no descriptor: it is no memory.
  Region page(uint64_t guest_address) const;
  // Which region's file is shorter now than it was; empty: none.
  std::string cut_short() const;

 private:
  void clear();
  std::vector<Region> regions_;
  std::vector<Shrinkable> watched_;
};

// A page of device memory: which one, its guest address and rights.
struct Page {
  uint32_t index = 0;
  uint64_t guest_address = 0;
  bool is_writable = false;
  bool operator==(const Page&) const = default;
};

// The 4 GiB of device addresses of one page table. The guest's own pages are mapped side by side, so that what a
// device writes is there for the guest, and a buffer of many pages is one run of bytes. May be used by several threads.
class AddressSpace {
 public:
  AddressSpace() = default;
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Counts revoke().
  uint64_t epoch() const;
  // Maps these pages and no others, in rising order, as a simulator takes them. Error: a page is no memory of the
  // guest, they lie in more pieces than a process may map, or revoke() was called since `epoch`.
  Result<sim::Memory> map(const GuestMemory& guest, std::span<const Page> pages, uint64_t epoch);
  // Nothing is mapped any longer; a thread that still uses what map() gave finds pages that are nobody's.
  void revoke();

 private:
  Result<void> reserve();
  // Of pages one behind another, those that are not there yet.
  Result<void> put(const GuestMemory& guest, std::span<const Page> pages);
  // Of such pages, how many from the first on lie one behind another in the guest's memory, too.
  size_t together(const GuestMemory& guest, std::span<const Page> pages) const;
  void forget_mappings();

  mutable std::mutex mutex_;
  uint64_t epoch_ = 0;
  uint8_t* base_ = nullptr;
  Shrinkable watched_;
  std::vector<Page> mapped_;  // by index
  size_t mappings_ = 0;
};

// The pages of two levels of tables, each of 1024 words that have the entry's valid bit in bit 0. `address_of`: the
// guest address in an entry of the directory; `page_of`: the page in an entry of a table.
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
