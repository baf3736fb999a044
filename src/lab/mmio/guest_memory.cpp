#include "lab/mmio/guest_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace skillet::mmio {
namespace {

// Linux allows a process 65,530 mappings, and checks this before it considers what a new one replaces.
constexpr size_t kMappingsMax = 48'000;
std::atomic<size_t> all_mappings = 0;
constexpr uint64_t kSpaceBytes = uint64_t{1} << 32;

}  // namespace

GuestMemory::~GuestMemory() { clear(); }

void GuestMemory::clear() {
  watched_.clear();
  for (const Region& one : regions_) {
    if (one.bytes != nullptr) ::munmap(one.bytes, one.size_bytes);
    if (one.fd >= 0) ::close(one.fd);
  }
  regions_.clear();
}

Result<void> GuestMemory::set(std::vector<Region> regions) {
  clear();
  regions_ = std::move(regions);
  for (Region& one : regions_) {
    const bool fits = one.size_bytes != 0 && one.guest_address + one.size_bytes > one.guest_address &&
                      one.user_address + one.size_bytes > one.user_address &&
                      one.file_offset + one.size_bytes > one.file_offset &&
                      (one.guest_address | one.size_bytes | one.file_offset) % kPageBytes == 0;
    const off_t end = fits ? ::lseek(one.fd, 0, SEEK_END) : -1;
    if (end < 0 || static_cast<uint64_t>(end) < one.file_offset + one.size_bytes)
      return error(ErrorCode::malformed, "guest memory at {:#x}: {} bytes from byte {} of a file of {}",
                   one.guest_address, one.size_bytes, one.file_offset, end);
    void* const bytes = ::mmap(nullptr, one.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, one.fd,
                               static_cast<off_t>(one.file_offset));
    if (bytes == MAP_FAILED)
      return error(ErrorCode::io, "guest memory at {:#x}: mmap of {} bytes: {}", one.guest_address, one.size_bytes,
                   std::strerror(errno));
    one.bytes = static_cast<uint8_t*>(bytes);
    SK_TRY(watched_.emplace_back().watch({one.bytes, one.size_bytes}));
  }
  return {};
}

std::string GuestMemory::cut_short() const {
  for (const Region& one : regions_) {
    struct stat now {};
    if (::fstat(one.fd, &now) == 0 && static_cast<uint64_t>(now.st_size) < one.file_offset + one.size_bytes)
      return fmt::format("the file of its memory at {:#x} was cut to {} bytes, of {}", one.guest_address, now.st_size,
                         one.file_offset + one.size_bytes);
  }
  return {};
}

namespace {

std::span<uint8_t> find(std::span<const Region> regions, uint64_t Region::*start, uint64_t address, uint64_t size) {
  for (const Region& one : regions) {
    if (one.bytes == nullptr || address < one.*start || address - one.*start > one.size_bytes) continue;
    const uint64_t offset = address - one.*start;
    if (size <= one.size_bytes - offset) return {one.bytes + offset, size};
  }
  return {};
}

}  // namespace

std::span<uint8_t> GuestMemory::at(uint64_t guest_address, uint64_t size_bytes) const {
  return find(regions_, &Region::guest_address, guest_address, size_bytes);
}

std::span<uint8_t> GuestMemory::from(uint64_t guest_address) const {
  for (const Region& one : regions_) {
    const uint64_t offset = guest_address - one.guest_address;
    if (one.bytes != nullptr && guest_address >= one.guest_address && offset < one.size_bytes)
      return {one.bytes + offset, static_cast<size_t>(one.size_bytes - offset)};
  }
  return {};
}

std::span<uint8_t> GuestMemory::at_user(uint64_t user_address, uint64_t size_bytes) const {
  return find(regions_, &Region::user_address, user_address, size_bytes);
}

std::optional<uint32_t> GuestMemory::word(uint64_t guest_address) const {
  const std::span<uint8_t> bytes = at(guest_address, sizeof(uint32_t));
  if (bytes.empty() || guest_address % sizeof(uint32_t) != 0) return std::nullopt;
  return std::atomic_ref(*reinterpret_cast<uint32_t*>(bytes.data())).load(std::memory_order_acquire);
}

Region GuestMemory::page(uint64_t guest_address) const {
  for (const Region& one : regions_) {
    if (guest_address < one.guest_address || guest_address - one.guest_address >= one.size_bytes) continue;
    return {.guest_address = guest_address,
            .size_bytes = kPageBytes,
            .user_address = 0,
            .file_offset = one.file_offset + (guest_address - one.guest_address),
            .fd = one.fd};
  }
  return {};
}

AddressSpace::~AddressSpace() {
  watched_.forget();
  forget_mappings();
  if (base_ != nullptr) ::munmap(base_, kSpaceBytes);
}

uint64_t AddressSpace::epoch() const {
  const std::lock_guard lock(mutex_);
  return epoch_;
}

Result<void> AddressSpace::reserve() {
  void* const base = ::mmap(nullptr, kSpaceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return error(ErrorCode::io, "4 GiB of addresses: {}", std::strerror(errno));
  base_ = static_cast<uint8_t*>(base);
  SK_TRY(watched_.watch({base_, kSpaceBytes}));
  mapped_.resize(kSpaceBytes / kPageBytes);
  return {};
}

// Always readable and writable in this process: the simulator gets the access rights.
Result<void> AddressSpace::put(const GuestMemory& guest, std::span<const Page> pages) {
  while (!pages.empty()) {
    const Page& first = pages[0];
    if (mapped_[first.index] == first) {
      pages = pages.subspan(1);
      continue;
    }
    const Region from = guest.page(first.guest_address);
    if (from.fd < 0)
      return error(ErrorCode::fault, "page {:#x}: {:#x} is not in the guest's memory", first.index * kPageBytes,
                   first.guest_address);
    if (all_mappings.load() >= kMappingsMax)
      return error(ErrorCode::fault, "page {:#x}: pages are in more than {} pieces of the guest's memory",
                   first.index * kPageBytes, kMappingsMax);
    const size_t count = together(guest, pages);
    if (::mmap(base_ + first.index * kPageBytes, count * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
               from.fd, static_cast<off_t>(from.file_offset)) == MAP_FAILED)
      return error(ErrorCode::io, "page {:#x}: mmap: {}", first.index * kPageBytes, std::strerror(errno));
    ++all_mappings, ++mappings_;
    for (const Page& page : pages.first(count)) mapped_[page.index] = page;
    pages = pages.subspan(count);
  }
  return {};
}

size_t AddressSpace::together(const GuestMemory& guest, std::span<const Page> pages) const {
  const Region from = guest.page(pages[0].guest_address);
  size_t count = 1;
  for (; count < pages.size() && mapped_[pages[count].index] != pages[count]; ++count) {
    const Region next = guest.page(pages[count].guest_address);
    if (next.fd != from.fd || next.file_offset != from.file_offset + count * kPageBytes) break;
  }
  return count;
}

void AddressSpace::forget_mappings() { all_mappings -= std::exchange(mappings_, 0); }

Result<sim::Memory> AddressSpace::map(const GuestMemory& guest, std::span<const Page> pages, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_) return error(ErrorCode::fault, "the device was reset");
  if (base_ == nullptr) SK_TRY(reserve());
  sim::Memory memory;
  for (size_t i = 0; i < pages.size();) {
    const uint64_t first = pages[i].index;
    const bool is_writable = pages[i].is_writable;
    uint64_t end = first;
    const size_t begin = i;
    while (i < pages.size() && pages[i].index == end && pages[i].is_writable == is_writable) ++i, ++end;
    SK_TRY(put(guest, pages.subspan(begin, i - begin)));
    const std::span<uint8_t> bytes(base_ + first * kPageBytes, (end - first) * kPageBytes);
    std::string name = fmt::format("pages {:#x} to {:#x}", first * kPageBytes, end * kPageBytes - 1);
    if (is_writable)
      SK_TRY(memory.map(first * kPageBytes, bytes, std::move(name)));
    else
      SK_TRY(memory.map_to_read(first * kPageBytes, bytes, std::move(name)));
  }
  return memory;
}

void AddressSpace::revoke() {
  const std::lock_guard lock(mutex_);
  ++epoch_;
  if (base_ == nullptr) return;
  if (::mmap(base_, kSpaceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
    std::abort();  // a thread would go on to use memory that the guest has freed
  forget_mappings();
  std::ranges::fill(mapped_, Page());
}

}  // namespace skillet::mmio
