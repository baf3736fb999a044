#include "kernels/etnaviv/fake/file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/int_math.h"
#include "kernels/etnaviv/abi.h"
#include "kernels/fake/calls.h"

namespace skillet::fake::etnaviv {
namespace {

// The performance counters that the kernel lists, by the numbers of queries. Their values are not emulated.
struct Counter {
  std::string_view domain, name;
};
constexpr Counter kCounters[] = {
#define COUNTER(domain, name) {#domain, #name},
#include "kernels/etnaviv/fake/counters.def"
#undef COUNTER
};

struct Domain {
  const Counter *begin, *end;
};

// Counters of a domain are adjacent in the table.
std::optional<Domain> domain_at(size_t number) {
  const Counter* begin = std::begin(kCounters);
  for (;; --number) {
    if (begin == std::end(kCounters)) return std::nullopt;
    const Counter* const end =
        std::find_if(begin, std::end(kCounters), [&](const Counter& one) { return one.domain != begin->domain; });
    if (number == 0) return Domain{begin, end};
    begin = end;
  }
}

template <typename Args>
void describe_as(Args& args, size_t number, std::string_view name, bool is_last) {
  using Number = decltype(args.iter);
  args.id = static_cast<decltype(args.id)>(number);
  args.iter = is_last ? static_cast<Number>(-1) : static_cast<Number>(number + 1);
  std::memset(args.name, 0, sizeof args.name);
  std::memcpy(args.name, name.data(), std::min(name.size(), sizeof args.name - 1));
}

// Fills in the domain with this number (`args.iter`), and the next number; false: it does not exist.
bool describe_domain(kernels::etnaviv::PmDomain& args) {
  const auto domain = domain_at(args.iter);
  if (!domain) return false;
  args.signal_count = static_cast<uint16_t>(domain->end - domain->begin);
  describe_as(args, args.iter, domain->begin->domain, domain->end == std::end(kCounters));
  return true;
}

bool has_signal(uint32_t domain, uint32_t signal) {
  const auto found = domain_at(domain);
  return found && signal < static_cast<size_t>(found->end - found->begin);
}

// The same for a signal of `args.domain`.
bool describe_signal(kernels::etnaviv::PmSignal& args) {
  const auto domain = domain_at(args.domain);
  if (!domain || args.iter >= domain->end - domain->begin) return false;
  const Counter* const signal = domain->begin + args.iter;
  describe_as(args, args.iter, signal->name, signal + 1 == domain->end);
  return true;
}

constexpr uint32_t kCacheMask = abi::kBoCached | abi::kBoWriteCombined | abi::kBoUncached;

}  // namespace

int EtnavivFile::check_pipe(uint32_t pipe) {
  if (pipe >= abi::kMaxPipes) return kernel_.refuse(EINVAL, "pipe {}: there are {} at most", pipe, abi::kMaxPipes);
  if (pipe >= kernel_.cores().size()) return -ENXIO;  // how user space finds the number of cores: no message
  return 0;
}

int EtnavivFile::version(drm::Version& args) {
  args.version_major = 1;
  args.version_minor = 4;
  args.version_patch = 0;
  return give_version(kernel_, abi::kDriverName, "0", "etnaviv DRM", args);
}

int EtnavivFile::get_unique(drm::Unique& args) {
  if (is_render_node()) return kernel_.refuse(EACCES, "get_unique: not on a render node");
  const std::string_view unique = has_unique_ ? abi::kDriverName : "";
  if (args.unique_len < unique.size()) {  // all of it or nothing
    args.unique_len = unique.size();
    return 0;
  }
  return give_text(kernel_, unique, args.unique, args.unique_len);
}

int EtnavivFile::get_magic(drm::Auth& args) {
  if (is_render_node()) return kernel_.refuse(EACCES, "get_magic: not on a render node");
  args.magic = 1;
  return 0;
}

int EtnavivFile::set_version(drm::SetVersion& args) {
  if (is_render_node()) return kernel_.refuse(EACCES, "set_version: not on a render node");
  const auto is_known = [](int32_t major, int32_t minor) {
    constexpr int32_t kMajor = 1, kMinor = 4;  // of DRM's core and, by chance, of the driver
    return major == -1 || (major == kMajor && minor >= 0 && minor <= kMinor);
  };
  if (!is_known(args.di_major, args.di_minor) || !is_known(args.dd_major, args.dd_minor))
    return kernel_.refuse(EINVAL, "set_version: interface {}.{}, driver {}.{}: there is 1.4 of both", args.di_major,
                          args.di_minor, args.dd_major, args.dd_minor);
  has_unique_ = has_unique_ || args.di_major != -1;
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
  // Memory is allocated at first use, so every size is accepted; sizes within the last page wrap to 0.
  const uint64_t whole_bytes = align_up(args.size, abi::kPageBytes);
  std::shared_ptr<Buffer> made;
  if (whole_bytes == 0 || whole_bytes > kLargestBytes) {
    made = Buffer::without_memory(whole_bytes);
  } else if (const int failure = kernel_.create_buffer(args.size, made); failure != 0) {
    return kernel_.refuse(-failure, "gem_new: no memory for {} bytes", args.size);
  }
  const Lock lock(kernel_.state());
  args.handle = add({std::move(made), {}});
  return 0;
}

int EtnavivFile::gem_userptr(abi::GemUserptr& args) {
  constexpr uint64_t kInPage = abi::kPageBytes - 1;
  if (args.flags == 0 || (args.flags & ~(abi::kUserptrRead | abi::kUserptrWrite)) != 0 ||
      ((args.user_ptr | args.user_size) & kInPage) != 0 || args.user_ptr + args.user_size < args.user_ptr)
    return kernel_.refuse(EINVAL, "gem_userptr: flags {:#x}, or not whole pages", args.flags);
  if (args.user_ptr + args.user_size > uint64_t{INT64_MAX})
    return kernel_.refuse(EFAULT, "gem_userptr: {:#x} is not memory of a process", args.user_ptr);
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
  const Entry* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "gem_info: no handle {}", args.handle);
  if (entry->buffer->size_bytes() == 0) return kernel_.refuse(ENOSPC, "gem_info: handle {} is empty", args.handle);
  args.offset = offset_of(args.handle);
  return 0;
}

int EtnavivFile::prime_handle_to_fd(drm::PrimeHandle& args) {
  const std::lock_guard in_order(kernel_.order());  // no job may write while the memory is moved
  const Lock lock(kernel_.state());
  return export_buffer(args);
}

int EtnavivFile::find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) {
  const int failure = GemFile::find_mapping(size_bytes, offset, out);
  if (failure == 0 && out->is_imported())
    kernel_.punish("mmap: the buffer is another driver's: a stock kernel frees it once too often");
  return failure;
}

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
  if (failure != 0)
    return kernel_.refuse(-failure, "prime_fd_to_handle: descriptor {} is not an exported buffer", args.fd);
  return import_buffer(args, found);
}

int EtnavivFile::need_memory(std::string_view call, uint32_t handle, const Buffer& buffer) {
  if (buffer.size_bytes() == 0)
    kernel_.punish(fmt::format("{}: handle {} is empty: a NULL pointer is followed in a stock kernel", call, handle));
  if (!buffer.has_memory()) return kernel_.refuse(ENOMEM, "{}: no memory for handle {}", call, handle);
  if (!buffer.is_present()) return kernel_.refuse(EFAULT, "{}: the memory of handle {} is gone", call, handle);
  return 0;
}

int EtnavivFile::wait_for(std::string_view call, uint32_t handle, bool with_readers, const abi::Timespec& deadline,
                          bool is_nonblocking) {
  Lock lock(kernel_.state());
  const Entry* const entry = find(handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "{}: no handle {}", call, handle);
  const std::shared_ptr<Buffer> buffer = entry->buffer;
  while (const std::optional<JobId> job = buffer->busy(kernel_.jobs(), with_readers)) {
    const int failure = kernel_.wait_for_job(lock, *job, Jobs::time(deadline.sec, deadline.nsec), is_nonblocking);
    if (failure != 0) return kernel_.refuse(-failure, "{}: handle {} is in use by job {}", call, handle, *job);
  }
  return 0;
}

int EtnavivFile::gem_cpu_prep(abi::GemCpuPrep& args) {
  if ((args.op & ~(abi::kPrepRead | abi::kPrepWrite | abi::kPrepNoSync)) != 0)
    return kernel_.refuse(EINVAL, "gem_cpu_prep: op {:#x}", args.op);
  {
    const Lock lock(kernel_.state());
    const Entry* const entry = find(args.handle);
    const int failure = entry == nullptr ? 0 : need_memory("gem_cpu_prep", args.handle, *entry->buffer);
    if (failure != 0) return failure;
  }
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
  const int failure = kernel_.wait_for_job(lock, args.fence, Jobs::time(args.timeout.sec, args.timeout.nsec),
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
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  return describe_domain(args) ? 0 : kernel_.refuse(EINVAL, "pm_query_dom: no domain {}", args.iter);
}

int EtnavivFile::pm_query_signal(abi::PmSignal& args) {
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  return describe_signal(args)
             ? 0
             : kernel_.refuse(EINVAL, "pm_query_sig: domain {} has no signal {}", args.domain, args.iter);
}

}  // namespace skillet::fake::etnaviv
