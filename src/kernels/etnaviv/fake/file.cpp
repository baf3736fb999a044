#include "kernels/etnaviv/fake/file.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "kernels/fake/calls.h"

namespace skillet::fake::etnaviv {
namespace {

constexpr uint32_t kCacheMask = abi::kBoCached | abi::kBoWriteCombined | abi::kBoUncached;

}  // namespace

int EtnavivFile::check_pipe(uint32_t pipe) {
  if (pipe >= abi::kMaxPipes) return kernel_.refuse(EINVAL, "pipe {}: there are {} at most", pipe, abi::kMaxPipes);
  if (pipe >= kernel_.cores().size()) return -ENXIO;  // how user space finds the number of cores: not worth a line
  return 0;
}

int EtnavivFile::version(drm::Version& args) {
  args.version_major = 1;
  args.version_minor = 4;
  args.version_patch = 0;
  return give_version(kernel_, abi::kDriverName, "20151214", "etnaviv DRM", args);
}

int EtnavivFile::get_unique(drm::Unique& args) {
  if (is_render_node()) return kernel_.refuse(EACCES, "get_unique: not on a render node");
  return give_text(kernel_, kernel_.cores()[0].identity.device_name, args.unique, args.unique_len);
}

int EtnavivFile::get_magic(drm::Auth& args) {
  if (is_render_node()) return kernel_.refuse(EACCES, "get_magic: not on a render node");
  args.magic = 1;
  return 0;
}

int EtnavivFile::set_version(drm::SetVersion& args) {
  if (is_render_node()) return kernel_.refuse(EACCES, "set_version: not on a render node");
  args = {.di_major = 1, .di_minor = 4, .dd_major = 1, .dd_minor = 4};
  return 0;
}

int EtnavivFile::get_param(abi::GetParam& args) {
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  const std::optional<uint64_t> value = param_of(kernel_.cores()[args.pipe].identity, args.param);
  if (!value) return kernel_.refuse(EINVAL, "get_param: unknown parameter {:#x}", args.param);
  args.value = *value;
  return 0;
}

int EtnavivFile::gem_new(abi::GemNew& args) {
  if ((args.flags & ~(kCacheMask | abi::kBoForceMmu)) != 0 || std::popcount(args.flags & kCacheMask) != 1)
    return kernel_.refuse(EINVAL, "gem_new: flags {:#x}: exactly one of cached, write-combined, uncached", args.flags);
  constexpr uint64_t kLargestBytes = uint64_t{1} << 40;
  if (args.size == 0) return kernel_.refuse(EINVAL, "gem_new: 0 bytes");
  if (args.size > kLargestBytes) return kernel_.refuse(ENOMEM, "gem_new: {} bytes", args.size);
  std::shared_ptr<Buffer> made;
  const int failure = kernel_.create_buffer(args.size, made);
  if (failure != 0) return kernel_.refuse(-failure, "gem_new: no memory for {} bytes", args.size);
  const Lock lock(kernel_.state());
  args.handle = add({std::move(made), {}});
  return 0;
}

int EtnavivFile::gem_userptr(abi::GemUserptr& args) {
  constexpr uint64_t kInPage = abi::kPageBytes - 1;
  if (args.flags == 0 || (args.flags & ~(abi::kUserptrRead | abi::kUserptrWrite)) != 0 || args.user_size == 0 ||
      ((args.user_ptr | args.user_size) & kInPage) != 0)
    return kernel_.refuse(EINVAL, "gem_userptr: flags {:#x}, or not whole pages", args.flags);
  std::shared_ptr<Buffer> made;
  const int failure = Buffer::of_user_memory(args.user_ptr, args.user_size, made);
  if (failure != 0) return kernel_.refuse(-failure, "gem_userptr: no memory at {:#x}", args.user_ptr);
  const Lock lock(kernel_.state());
  args.handle = add({std::move(made), {}});
  return 0;
}

int EtnavivFile::gem_info(abi::GemInfo& args) {
  if (args.pad != 0) return kernel_.refuse(EINVAL, "gem_info: pad is {}", args.pad);
  const Lock lock(kernel_.state());
  if (find(args.handle) == nullptr) return kernel_.refuse(ENOENT, "gem_info: no handle {}", args.handle);
  args.offset = offset_of(args.handle);
  return 0;
}

int EtnavivFile::prime_handle_to_fd(drm::PrimeHandle& args) {
  const std::lock_guard in_order(kernel_.order());  // no job writes while the memory moves
  const Lock lock(kernel_.state());
  return export_buffer(args);
}

// One memory has one handle in each file.
int EtnavivFile::prime_fd_to_handle(drm::PrimeHandle& args) {
  std::shared_ptr<Buffer> found;
  const Lock lock(kernel_.state());
  const int failure = kernel_.import_buffer(args.fd, found);
  if (failure == -EPERM)
    return kernel_.refuse(
        EPERM, "prime_fd_to_handle: the owner of descriptor {} can cut it off; make it with MFD_ALLOW_SEALING",
        args.fd);
  if (failure == -EINVAL)
    return kernel_.refuse(EINVAL, "prime_fd_to_handle: descriptor {} holds nothing, or no whole pages", args.fd);
  if (failure != 0) return kernel_.refuse(-failure, "prime_fd_to_handle: descriptor {} is no exported buffer", args.fd);
  for (const auto& [handle, entry] : entries_) {
    if (entry.buffer != found) continue;
    args.handle = handle;
    return 0;
  }
  args.handle = add({std::move(found), {}});
  return 0;
}

int EtnavivFile::wait_for(std::string_view call, uint32_t handle, bool with_readers, const abi::Timespec& deadline,
                          bool is_nonblocking) {
  Lock lock(kernel_.state());
  const Entry* const entry = find(handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "{}: no handle {}", call, handle);
  const std::shared_ptr<Buffer> buffer = entry->buffer;
  while (const std::optional<JobId> job = buffer->busy(kernel_.jobs(), with_readers)) {
    const int failure = kernel_.jobs().wait(lock, *job, Jobs::time(deadline.sec, deadline.nsec), is_nonblocking);
    if (failure != 0) return kernel_.refuse(-failure, "{}: handle {} is in use by job {}", call, handle, *job);
  }
  return 0;
}

int EtnavivFile::gem_cpu_prep(abi::GemCpuPrep& args) {
  if ((args.op & ~(abi::kPrepRead | abi::kPrepWrite | abi::kPrepNoSync)) != 0)
    return kernel_.refuse(EINVAL, "gem_cpu_prep: op {:#x}", args.op);
  return wait_for("gem_cpu_prep", args.handle, (args.op & abi::kPrepWrite) != 0, args.timeout,
                  (args.op & abi::kPrepNoSync) != 0);
}

int EtnavivFile::gem_cpu_fini(abi::GemCpuFini& args) {
  if (args.flags != 0) return kernel_.refuse(EINVAL, "gem_cpu_fini: flags {:#x}", args.flags);
  const Lock lock(kernel_.state());
  if (find(args.handle) == nullptr) return kernel_.refuse(ENOENT, "gem_cpu_fini: no handle {}", args.handle);
  return 0;
}

int EtnavivFile::wait_fence(abi::WaitFence& args) {
  if ((args.flags & ~abi::kWaitNonBlock) != 0) return kernel_.refuse(EINVAL, "wait_fence: flags {:#x}", args.flags);
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  Lock lock(kernel_.state());
  const int failure = kernel_.jobs().wait(lock, args.fence, Jobs::time(args.timeout.sec, args.timeout.nsec),
                                          (args.flags & abi::kWaitNonBlock) != 0);
  if (failure != 0) return kernel_.refuse(-failure, "wait_fence: job {} is not finished", args.fence);
  return 0;
}

int EtnavivFile::gem_wait(abi::GemWait& args) {
  if ((args.flags & ~abi::kWaitNonBlock) != 0) return kernel_.refuse(EINVAL, "gem_wait: flags {:#x}", args.flags);
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  return wait_for("gem_wait", args.handle, true, args.timeout, (args.flags & abi::kWaitNonBlock) != 0);
}

int EtnavivFile::pm_query_domain(abi::PmDomain& args) {
  const int failure = check_pipe(args.pipe);
  return failure != 0 ? failure : kernel_.refuse(EINVAL, "pm_query_dom: the NPU has no performance counters");
}

int EtnavivFile::pm_query_signal(abi::PmSignal& args) {
  const int failure = check_pipe(args.pipe);
  return failure != 0 ? failure : kernel_.refuse(EINVAL, "pm_query_sig: the NPU has no performance counters");
}

}  // namespace skillet::fake::etnaviv
