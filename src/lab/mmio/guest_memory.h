// GuestMemory: the memory of a guest kernel, as the front end of vhost-user hands it over; AddressSpace: the device
// addresses that a page table in it makes, as contiguous bytes of this process.
// Called by the devices of lab/mmio/.
// Must not know: any device, virtqueues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
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
  // The same by the address that the front end itself uses.
  std::span<uint8_t> at_user(uint64_t user_address, uint64_t size_bytes) const;
  // A word that the guest may write meanwhile.
  std::optional<uint32_t> word(uint64_t guest_address) const;
  // Where a page is in its file; no descriptor: it is no memory.
  Region page(uint64_t guest_address) const;

 private:
  void clear();
  std::vector<Region> regions_;
};

// A page of device memory: its guest address and rights.
struct Page {
  uint64_t guest_address = 0;
  bool is_present = false, is_writable = false;
  bool operator==(const Page&) const = default;
};

// The 4 GiB of device addresses of one page table. The guest's own pages are mapped side by side, so that what a
// device writes is there for the guest, and a buffer of many pages is one run of bytes.
class AddressSpace {
 public:
  AddressSpace() = default;
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Begins a walk of the page table: pages that are not set() until end() are gone.
  void begin() { seen_.assign(seen_.size(), false); }
  // Error when the page is no memory of the guest.
  Result<void> set(const GuestMemory& guest, uint32_t page, const Page& to);
  // What is mapped now, as a simulator takes it.
  Result<sim::Memory> end();
  // Nothing is mapped any longer; a thread that still uses memory of end() finds pages that are nobody's.
  void revoke();
  uint64_t pages() const { return count_; }

 private:
  Result<void> reserve();
  static constexpr uint32_t kPages = 1 << 20;
  uint8_t* base_ = nullptr;
  std::vector<Page> pages_;
  std::vector<bool> seen_;
  uint64_t count_ = 0;
};

}  // namespace skillet::mmio
