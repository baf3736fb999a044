#include "kernels/fake/gem_file.h"

#include <algorithm>
#include <cerrno>

namespace skillet::fake {
namespace {

namespace drm = kernels::drm;

}  // namespace

GemFile::Entry* GemFile::find(uint32_t handle) {
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : &found->second;
}

uint32_t GemFile::add(Entry entry) {
  uint32_t handle = 1;
  for (auto used = entries_.begin(); used != entries_.end() && used->first == handle; ++used) ++handle;
  kernel_.offset_of(entry.buffer);  // now, so that later calls allocate nothing
  entries_[handle] = std::move(entry);
  return handle;
}

int GemFile::prime_fd_to_handle(drm::PrimeHandle& args) {
  const Lock lock(kernel_.state());
  std::shared_ptr<Buffer> found;
  if (const int failure = kernel_.exported_buffer(args.fd, found); failure != 0)
    return kernel_.refuse(-failure, "prime_fd_to_handle: descriptor {} is not a buffer of this device", args.fd);
  return import_buffer(args, found);
}

int GemFile::import_buffer(drm::PrimeHandle& args, const std::shared_ptr<Buffer>& buffer) {
  const auto known = std::ranges::find_if(entries_, [&](const auto& one) { return one.second.buffer == buffer; });
  args.handle = known != entries_.end() ? known->first : add({buffer, {}});
  return 0;
}

int GemFile::find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) {
  if (const Fault fault = kernel_.next_fault("mmap"); fault.kind == FaultKind::number)
    return kernel_.inject(fault, "mmap");
  const Lock lock(kernel_.state());
  const std::shared_ptr<Buffer> buffer = kernel_.buffer_at(offset);
  if (buffer == nullptr || size_bytes > buffer->size_bytes())
    return kernel_.refuse(EINVAL, "mmap: no buffer of {} bytes at offset {:#x}", size_bytes, offset);
  if (std::ranges::none_of(entries_, [&](const auto& one) { return one.second.buffer == buffer; }))
    return kernel_.refuse(EACCES, "mmap: the buffer at offset {:#x} has no handle in this file", offset);
  if (!buffer->can_map() || (!kernel_.options().is_own_process && buffer->descriptor() < 0))
    return kernel_.refuse(EINVAL, "mmap: the buffer at offset {:#x} cannot be mapped", offset);
  out = buffer;
  return 0;
}

// Buffers without memory are not resident; active and purgeable memory is not reported.
std::string GemFile::memory_fdinfo(std::string_view driver) {
  const Lock lock(kernel_.state());
  uint64_t total = 0, resident = 0;
  for (const auto& [handle, entry] : entries_) {
    total += entry.buffer->size_bytes();
    resident += entry.buffer->has_memory() ? entry.buffer->size_bytes() : 0;
  }
  return fmt::format("drm-driver:\t{}\ndrm-client-id:\t{}\ndrm-total-memory:\t{} KiB\ndrm-resident-memory:\t{} KiB\n",
                     driver, client_, total / 1024, resident / 1024);
}

// Capabilities in DRM's core for a driver that shares buffers and has no display.
int GemFile::get_cap(drm::GetCap& args) {
  switch (args.capability) {
    case drm::kCapPrime: args.value = drm::kPrimeImport | drm::kPrimeExport; return 0;
    case drm::kCapTimestampMonotonic: args.value = 1; return 0;
    case drm::kCapSyncobj:
    case drm::kCapSyncobjTimeline: args.value = 0; return 0;
    default: return kernel_.refuse(EOPNOTSUPP, "get_cap {:#x}: only for display drivers", args.capability);
  }
}

int GemFile::gem_close(drm::GemClose& args) {
  std::shared_ptr<Buffer> last;  // its memory is freed after unlocking
  const Lock lock(kernel_.state());
  Entry* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(EINVAL, "gem_close: no handle {}", args.handle);
  last = entry->buffer;
  if (entry->address) closed_.push_back(std::move(*entry));
  entries_.erase(args.handle);
  reclaim();
  return 0;
}

void GemFile::reclaim() {
  std::erase_if(closed_, [&](const Entry& one) {
    if (is_in_use(*one.buffer)) return false;
    addresses_.give_back(*one.address, one.buffer->size_bytes());
    return true;
  });
}

int GemFile::export_buffer(drm::PrimeHandle& args) {
  if ((args.flags & ~(drm::kPrimeCloexec | drm::kPrimeReadWrite)) != 0)
    return kernel_.refuse(EINVAL, "prime_handle_to_fd: flags {:#x}", args.flags);
  const Entry* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "prime_handle_to_fd: no handle {}", args.handle);
  const int fd = kernel_.export_buffer(entry->buffer, args.flags);
  if (fd < 0) return kernel_.refuse(-fd, "prime_handle_to_fd: handle {} cannot be exported", args.handle);
  args.fd = fd;
  return 0;
}

}  // namespace skillet::fake
