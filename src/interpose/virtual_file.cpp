#include "interpose/virtual_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/int_math.h"
#include "interpose/chip_identity.h"
#include "interpose/libc.h"
#include "interpose/node_tree.h"

namespace skillet::interpose {
namespace {

constexpr uint32_t kCacheMask = abi::kBoCached | abi::kBoWriteCombined | abi::kBoUncached;
constexpr uint32_t kForceMmu = 0x00100000;

// As much of `text` as fits; the length becomes that of the whole.
void give_text(std::string_view text, char* to, size_t& length) {
  if (to != nullptr) std::memcpy(to, text.data(), std::min(length, text.size()));
  length = text.size();
}

}  // namespace

VirtualFile::Entry* VirtualFile::find(uint32_t handle) {
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : &found->second;
}

std::shared_ptr<GemBuffer> VirtualFile::buffer(uint32_t handle) {
  const std::lock_guard lock(mutex_);
  const Entry* const entry = find(handle);
  return entry == nullptr ? nullptr : entry->buffer;
}

uint32_t VirtualFile::add(std::shared_ptr<GemBuffer> buffer) {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, entry] : entries_) {
    if (entry.buffer == buffer) return handle;
  }
  const uint64_t offset = next_offset_;
  next_offset_ += buffer->size_bytes();
  entries_[++last_handle_] = {std::move(buffer), offset, 0};
  return last_handle_;
}

int VirtualFile::check_pipe(uint32_t pipe) const {
  if (pipe >= abi::kMaxPipes) return core_.refuse(EINVAL, "pipe {}: there are {} at most", pipe, abi::kMaxPipes);
  if (pipe != 0) return -ENXIO;  // how user space finds the number of cores: not worth a line
  return 0;
}

int VirtualFile::version(abi::DrmVersion& args) {
  args.version_major = 1;
  args.version_minor = 4;
  args.version_patch = 0;
  give_text(abi::kDriverName, args.name, args.name_len);
  give_text("20151214", args.date, args.date_len);
  give_text("etnaviv DRM", args.desc, args.desc_len);
  return 0;
}

int VirtualFile::get_unique(DrmUnique& args) {
  if (minor_ >= kRenderMinor) return core_.refuse(EACCES, "get_unique: not on a render node");
  give_text(identity_of(core_.options().chip).device_name, args.unique, args.unique_len);
  return 0;
}

int VirtualFile::get_magic(DrmAuth& args) {
  if (minor_ >= kRenderMinor) return core_.refuse(EACCES, "get_magic: not on a render node");
  args.magic = 1;
  return 0;
}

int VirtualFile::set_version(DrmSetVersion& args) {
  if (minor_ >= kRenderMinor) return core_.refuse(EACCES, "set_version: not on a render node");
  args = {.di_major = 1, .di_minor = 4, .dd_major = 1, .dd_minor = 4};
  return 0;
}

int VirtualFile::get_cap(DrmGetCap& args) {
  switch (args.capability) {
    case kCapPrime: args.value = kPrimeImport | kPrimeExport; return 0;
    case kCapTimestampMonotonic: args.value = 1; return 0;
    case kCapSyncobj:
    case kCapSyncobjTimeline: args.value = 0; return 0;
    default: return core_.refuse(EOPNOTSUPP, "get_cap {:#x}: only for display drivers", args.capability);
  }
}

int VirtualFile::get_param(abi::GetParam& args) {
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  const std::optional<uint64_t> value = chip_param(core_.options().chip, args.param);
  if (!value) return core_.refuse(EINVAL, "get_param: unknown parameter {:#x}", args.param);
  args.value = *value;
  return 0;
}

int VirtualFile::gem_new(abi::GemNew& args) {
  if ((args.flags & ~(kCacheMask | kForceMmu)) != 0 || std::popcount(args.flags & kCacheMask) != 1)
    return core_.refuse(EINVAL, "gem_new: flags {:#x}: exactly one of cached, write-combined, uncached", args.flags);
  constexpr uint64_t kLargestBytes = uint64_t{1} << 40;
  if (args.size == 0) return core_.refuse(EINVAL, "gem_new: 0 bytes");
  if (args.size > kLargestBytes) return core_.refuse(ENOMEM, "gem_new: {} bytes", args.size);
  std::shared_ptr<GemBuffer> made;
  const int failure = GemBuffer::create(align_up(args.size, AddressMap::kPageBytes), made);
  if (failure != 0) return core_.refuse(-failure, "gem_new: no memory for {} bytes", args.size);
  args.handle = add(std::move(made));
  core_.trace("gem_new: {} bytes, handle {}", args.size, args.handle);
  return 0;
}

int VirtualFile::gem_userptr(GemUserptr& args) {
  constexpr uint64_t kInPage = AddressMap::kPageBytes - 1;
  if (args.flags == 0 || (args.flags & ~(kUserptrRead | kUserptrWrite)) != 0 || args.user_size == 0 ||
      ((args.user_ptr | args.user_size) & kInPage) != 0)
    return core_.refuse(EINVAL, "gem_userptr: flags {:#x}, or not whole pages", args.flags);
  std::shared_ptr<GemBuffer> made;
  const int failure = GemBuffer::of_user_memory(args.user_ptr, args.user_size, made);
  if (failure != 0) return core_.refuse(-failure, "gem_userptr: no memory at {:#x}", args.user_ptr);
  args.handle = add(std::move(made));
  return 0;
}

int VirtualFile::gem_close(abi::GemClose& args) {
  const std::lock_guard lock(mutex_);
  const Entry* const entry = find(args.handle);
  if (entry == nullptr) return core_.refuse(EINVAL, "gem_close: no handle {}", args.handle);
  if (entry->address != 0) addresses_.give_back(entry->address);
  entries_.erase(args.handle);
  return 0;
}

int VirtualFile::gem_info(abi::GemInfo& args) {
  if (args.pad != 0) return core_.refuse(EINVAL, "gem_info: pad is {}", args.pad);
  const std::lock_guard lock(mutex_);
  const Entry* const entry = find(args.handle);
  if (entry == nullptr) return core_.refuse(ENOENT, "gem_info: no handle {}", args.handle);
  args.offset = entry->offset;
  return 0;
}

void* VirtualFile::mmap(void* address, size_t length, int protection, int flags, uint64_t offset) {
  std::shared_ptr<GemBuffer> found;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, entry] : entries_) {
      if (entry.offset == offset) found = entry.buffer;
    }
  }
  int failure = 0;
  if (const Fault fault = core_.options().faults.next("mmap"); fault.kind == FaultKind::number) {
    failure = core_.refuse(fault.number, "mmap: injected fault");
  } else if (found == nullptr || found->fd() < 0 || length > found->size_bytes()) {
    failure = core_.refuse(EINVAL, "mmap: no buffer of {} bytes at offset {:#x}", length, offset);
  }
  if (failure != 0) {
    errno = -failure;
    return MAP_FAILED;
  }
  return libc::mmap(address, length, protection, flags, found->fd(), off_t{0});
}

int VirtualFile::prime_handle_to_fd(abi::PrimeHandle& args) {
  if ((args.flags & ~(abi::kPrimeCloexec | abi::kPrimeReadWrite)) != 0)
    return core_.refuse(EINVAL, "prime_handle_to_fd: flags {:#x}", args.flags);
  const std::shared_ptr<GemBuffer> found = buffer(args.handle);
  if (found == nullptr) return core_.refuse(ENOENT, "prime_handle_to_fd: no handle {}", args.handle);
  if (found->fd() < 0) return core_.refuse(EINVAL, "prime_handle_to_fd: memory of the process cannot be exported");
  const int command = (args.flags & abi::kPrimeCloexec) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD;
  args.fd = libc::fcntl(found->fd(), command, 0);
  return args.fd < 0 ? -EMFILE : 0;
}

int VirtualFile::prime_fd_to_handle(abi::PrimeHandle& args) {
  std::shared_ptr<GemBuffer> found;
  const int failure = GemBuffer::import(args.fd, found);
  if (failure != 0) return core_.refuse(-failure, "prime_fd_to_handle: descriptor {} is no exported buffer", args.fd);
  args.handle = add(std::move(found));
  return 0;
}

int VirtualFile::wait_for(std::string_view call, uint32_t handle, bool with_readers, abi::Timespec deadline,
                          bool is_nonblocking) {
  const std::shared_ptr<GemBuffer> found = buffer(handle);
  if (found == nullptr) return core_.refuse(ENOENT, "{}: no handle {}", call, handle);
  for (const JobRef& job : found->jobs(with_readers)) {
    const int failure = core_.jobs().wait(job, deadline, is_nonblocking);
    if (failure != 0) return core_.refuse(-failure, "{}: handle {} is in use by job {}", call, handle, job->id);
  }
  return 0;
}

int VirtualFile::gem_cpu_prep(abi::GemCpuPrep& args) {
  if ((args.op & ~(abi::kPrepRead | abi::kPrepWrite | abi::kPrepNoSync)) != 0)
    return core_.refuse(EINVAL, "gem_cpu_prep: op {:#x}", args.op);
  return wait_for("gem_cpu_prep", args.handle, (args.op & abi::kPrepWrite) != 0, args.timeout,
                  (args.op & abi::kPrepNoSync) != 0);
}

int VirtualFile::gem_cpu_fini(abi::GemCpuFini& args) {
  if (args.flags != 0) return core_.refuse(EINVAL, "gem_cpu_fini: flags {:#x}", args.flags);
  if (buffer(args.handle) == nullptr) return core_.refuse(ENOENT, "gem_cpu_fini: no handle {}", args.handle);
  return 0;
}

int VirtualFile::wait_fence(abi::WaitFence& args) {
  if ((args.flags & ~abi::kWaitNonBlock) != 0) return core_.refuse(EINVAL, "wait_fence: flags {:#x}", args.flags);
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  const bool is_nonblocking = (args.flags & abi::kWaitNonBlock) != 0;
  const int failure = core_.jobs().wait(core_.jobs().find(args.fence), args.timeout, is_nonblocking);
  if (failure != 0) return core_.refuse(-failure, "wait_fence: job {} is not finished", args.fence);
  return 0;
}

int VirtualFile::gem_wait(abi::GemWait& args) {
  if ((args.flags & ~abi::kWaitNonBlock) != 0) return core_.refuse(EINVAL, "gem_wait: flags {:#x}", args.flags);
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  return wait_for("gem_wait", args.handle, true, args.timeout, (args.flags & abi::kWaitNonBlock) != 0);
}

int VirtualFile::pm_query_domain(PmDomain& args) {
  const int failure = check_pipe(args.pipe);
  return failure != 0 ? failure : core_.refuse(EINVAL, "pm_query_dom: the NPU has no performance counters");
}

int VirtualFile::pm_query_signal(PmSignal& args) {
  const int failure = check_pipe(args.pipe);
  return failure != 0 ? failure : core_.refuse(EINVAL, "pm_query_sig: the NPU has no performance counters");
}

}  // namespace skillet::interpose
