#include "kernels/fake/kernel.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/user_memory.h"
#include "kernels/api/drm.h"

namespace skillet::fake {

int Kernel::open(unsigned minor, std::shared_ptr<File>& out) {
  if (const Fault fault = next_fault("open"); fault.kind == FaultKind::number) return inject(fault, "open");
  out = make_file(minor);
  return 0;
}

std::string Kernel::reason() const {
  const std::lock_guard lock(reason_mutex_);
  return reason_;
}

void Kernel::reset() {
  const std::lock_guard lock(state_);
  jobs_.finish_all();
}

std::chrono::steady_clock::time_point Kernel::now() const {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(passed_ns_);
}

int Kernel::wait_for_job(std::unique_lock<std::mutex>& lock, JobId job, Jobs::Time deadline, bool is_nonblocking) {
  if (!options_.is_own_process) return jobs_.wait(lock, job, deadline, is_nonblocking);
  const int failure = jobs_.wait(lock, job, {}, is_nonblocking);
  if (failure == -ETIMEDOUT)
    let_pass(std::max(std::chrono::nanoseconds(0), deadline - std::chrono::steady_clock::now()));
  return failure;
}

void Kernel::punish(const std::string& what) const {
  const std::string line = fmt::format("skillet: error: virtual {}: {}\n", place().driver, what);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  if (options_.on_misuse == OnMisuse::abort) std::abort();
}

void Kernel::lock_all() {
  order_.lock();
  state_.lock();
  reason_mutex_.lock();
}

void Kernel::unlock_all() {
  reason_mutex_.unlock();
  state_.unlock();
  order_.unlock();
}

int Kernel::create_buffer(uint64_t size_bytes, std::shared_ptr<Buffer>& out) const {
  return Buffer::create(size_bytes, options_.is_own_process ? Backing::own : Backing::shared, out);
}

uint64_t Kernel::offset_of(const std::shared_ptr<Buffer>& buffer) {
  constexpr uint64_t kStep = uint64_t{1} << 32;  // no buffer is larger
  if (buffer->offset() == 0) {
    std::erase_if(mappable_, [](const auto& one) { return one.second.expired(); });
    buffer->set_offset(mappable_.empty() ? kStep : mappable_.rbegin()->first + kStep);
    mappable_[buffer->offset()] = buffer;
  }
  return buffer->offset();
}

std::shared_ptr<Buffer> Kernel::buffer_at(uint64_t offset) const {
  const auto found = mappable_.find(offset);
  return found == mappable_.end() ? nullptr : found->second.lock();
}

int Kernel::exported_buffer(int fd, std::shared_ptr<Buffer>& out) {
  if (::fcntl(fd, F_GETFD) < 0) return -EBADF;
  if (::fcntl(fd, F_GET_SEALS) != Buffer::kSeals) return -EINVAL;
  return import_buffer(fd, out);  // even if no handle is left: the descriptor keeps the memory
}

int Kernel::import_buffer(int fd, std::shared_ptr<Buffer>& out) {
  if (::fcntl(fd, F_GETFD) < 0) return -EBADF;
  const auto identity = Buffer::identify(fd);
  if (!identity) return -EINVAL;
  std::erase_if(shared_, [](const auto& one) { return one.second.expired(); });
  if (const auto found = shared_.find(*identity); found != shared_.end()) {
    out = found->second.lock();
    return 0;
  }
  const int failure = Buffer::import(fd, out);
  if (failure == 0) shared_[*identity] = out;
  return failure;
}

int Kernel::export_buffer(const std::shared_ptr<Buffer>& buffer, uint32_t flags) {
  const int own = buffer->descriptor();
  if (own < 0) return own;
  if (const auto identity = Buffer::identify(own)) shared_[*identity] = buffer;
  const bool closes_on_exec = (flags & kernels::drm::kPrimeCloexec) != 0;
  // All descriptors of a buffer are one dma-buf: the first one decides whether it is writable.
  if (!buffer->exported_writable()) buffer->set_exported_writable((flags & kernels::drm::kPrimeReadWrite) != 0);
  if (!*buffer->exported_writable()) {
    const std::string path = fmt::format("/proc/self/fd/{}", own);
    const int fd = ::open(path.c_str(), O_RDONLY | (closes_on_exec ? O_CLOEXEC : 0));
    if (fd >= 0 || errno == EMFILE) return fd < 0 ? -EMFILE : fd;
  }
  const int fd = ::fcntl(own, closes_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  return fd < 0 ? -EMFILE : fd;
}

int Kernel::copy_from_user(void* to, uint64_t from, size_t size_bytes) const {
  if (!options_.is_own_process) return skillet::copy_from_user(to, from, size_bytes);
  if (size_bytes == 0) return 0;
  if (from == 0) return -EFAULT;
  std::memcpy(to, reinterpret_cast<const void*>(from), size_bytes);
  return 0;
}

int Kernel::copy_to_user(uint64_t to, const void* from, size_t size_bytes) const {
  if (!options_.is_own_process) return skillet::copy_to_user(to, from, size_bytes);
  if (size_bytes == 0) return 0;
  if (to == 0) return -EFAULT;
  std::memcpy(reinterpret_cast<void*>(to), from, size_bytes);
  return 0;
}

Fault Kernel::next_fault(std::string_view call) { return options_.faults.next(call); }

// Sets no reason for the client: tests check its reaction to the errno.
int Kernel::inject(const Fault& fault, std::string_view call) {
  refuse(fault.number, "{}: injected fault", call);
  const std::lock_guard lock(reason_mutex_);
  reason_.clear();
  return -fault.number;
}

void Kernel::write_trace(const std::string& text) const {
  const std::string line = fmt::format("skillet: virtual: {}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Kernel::keep_reason(int number, std::string text) {
  if (options_.traces || log::enabled(log::Level::debug)) {
    const char* const name = ::strerrorname_np(number);
    write_trace(fmt::format("{}: {}", name == nullptr ? "?" : name, text));
  }
  const std::lock_guard lock(reason_mutex_);
  reason_ = std::move(text);
}

}  // namespace skillet::fake
