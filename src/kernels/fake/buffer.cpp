#include "kernels/fake/buffer.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/int_math.h"
#include "base/leaked.h"
#include "base/user_memory.h"

namespace skillet::fake {
namespace {

constexpr rlim_t kWantedFiles = 65536;
constexpr int kFirstBufferFd = 16384;  // beyond the numbers that the process normally uses

// A real kernel's buffers use no descriptors of the process: raises the limit for ours, and keeps them at high numbers.
int lowest_buffer_fd() {
  return leaked([] {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur < kWantedFiles) {
      limit.rlim_cur = std::min(limit.rlim_max, kWantedFiles);
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur > 2 * kFirstBufferFd ? kFirstBufferFd : 0;
  });
}

// A memfd of this size that cannot be resized; or a negative errno.
int create_memory(uint64_t size_bytes) {
  const int low = ::memfd_create("skillet-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (low < 0) return errno == EMFILE || errno == ENFILE ? -errno : -ENOMEM;
  int fd = ::fcntl(low, F_DUPFD_CLOEXEC, lowest_buffer_fd());
  if (fd >= 0) {
    ::close(low);
  } else {
    fd = low;
  }
  if (::ftruncate(fd, static_cast<off_t>(size_bytes)) != 0) {
    ::close(fd);
    return -ENOMEM;
  }
  ::fcntl(fd, F_ADD_SEALS, Buffer::kSeals);  // emulators and sandboxes may not support it
  return fd;
}

void* map_shared(void* at, uint64_t size_bytes, int fd, int flags) {
  return ::mmap(at, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | flags, fd, 0);
}

bool has_seal(int fd, int seal) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & seal) != 0;
}

// The device can write memory even if the process's descriptor of it is read-only.
int writable_copy(int fd) {
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, lowest_buffer_fd());
  if (own < 0 || (::fcntl(own, F_GETFL) & O_ACCMODE) == O_RDWR) return own;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", own);
  const int low = ::open(path, O_RDWR | O_CLOEXEC);
  if (low < 0) return own;
  const int writable = ::fcntl(low, F_DUPFD_CLOEXEC, lowest_buffer_fd());
  ::close(low);
  ::close(own);
  return writable;
}

// A kernel's buffer cannot be truncated while in use; for other files, the creator must allow a seal.
bool keeps_its_size(int fd) {
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
  if (has_seal(fd, F_SEAL_SHRINK)) return true;
  struct statfs system {};
  if (::fstatfs(fd, &system) == 0 && system.f_type == DMA_BUF_MAGIC) return true;
  const bool can_seal = leaked([] {
    const int own = create_memory(Buffer::kPageBytes);
    const bool sealed = own >= 0 && has_seal(own, F_SEAL_SHRINK);
    if (own >= 0) ::close(own);
    return sealed;
  });
  return !can_seal;
}

}  // namespace

std::optional<Buffer::Identity> Buffer::identify(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

// Takes ownership of `fd`.
int Buffer::adopt(int fd, uint64_t size_bytes, std::shared_ptr<Buffer>& out) {
  void* const bytes = map_shared(nullptr, size_bytes, fd, 0);
  if (bytes == MAP_FAILED) {
    ::close(fd);
    return -ENOMEM;
  }
  out.reset(new Buffer);
  out->fd_ = fd;
  out->bytes_ = static_cast<uint8_t*>(bytes);
  out->size_bytes_ = out->asked_bytes_ = size_bytes;
  return 0;
}

int Buffer::create(uint64_t size_bytes, Backing backing, std::shared_ptr<Buffer>& out) {
  const uint64_t whole_bytes = align_up(size_bytes, kPageBytes);
  if (backing == Backing::shared) {
    const int fd = create_memory(whole_bytes);
    if (fd < 0) return fd;
    if (const int failure = adopt(fd, whole_bytes, out); failure != 0) return failure;
  } else {
    void* const bytes =
        ::mmap(nullptr, whole_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) return -ENOMEM;
    ::madvise(bytes, whole_bytes, MADV_HUGEPAGE);  // first accesses to small pages take longer than copies to them
    out.reset(new Buffer);
    out->bytes_ = static_cast<uint8_t*>(bytes);
    out->size_bytes_ = whole_bytes;
  }
  out->asked_bytes_ = size_bytes;
  return 0;
}

int Buffer::of_user_memory(uint64_t pointer, uint64_t size_bytes, std::shared_ptr<Buffer>& out) {
  out.reset(new Buffer);
  out->bytes_ = reinterpret_cast<uint8_t*>(pointer);
  out->size_bytes_ = out->asked_bytes_ = size_bytes;
  out->is_users_ = true;
  return 0;
}

std::shared_ptr<Buffer> Buffer::without_memory(uint64_t size_bytes) {
  std::shared_ptr<Buffer> made(new Buffer);
  made->size_bytes_ = made->asked_bytes_ = size_bytes;
  return made;
}

int Buffer::import(int fd, std::shared_ptr<Buffer>& out) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return -EBADF;
  if (status.st_size == 0 || static_cast<uint64_t>(status.st_size) % kPageBytes != 0) return -EINVAL;
  const int own = writable_copy(fd);
  if (own < 0) return -EMFILE;
  if (!keeps_its_size(own)) {
    ::close(own);
    return -EPERM;
  }
  const int failure = adopt(own, static_cast<uint64_t>(status.st_size), out);
  if (failure == 0) out->is_imported_ = true;
  return failure;
}

Buffer::~Buffer() {
  if (!is_users_ && bytes_ != nullptr) ::munmap(bytes_, size_bytes_);
  if (fd_ >= 0) ::close(fd_);
}

int Buffer::descriptor() {
  if (is_users_) return -EINVAL;
  if (fd_ >= 0) return fd_;
  if (bytes_ == nullptr) return fd_ = create_memory(size_bytes_);
  const int fd = create_memory(size_bytes_);
  if (fd < 0) return fd;
  void* const copy = map_shared(nullptr, size_bytes_, fd, 0);
  if (copy != MAP_FAILED) {
    std::memcpy(copy, bytes_, size_bytes_);
    ::munmap(copy, size_bytes_);
  }
  // Replaces the old pages in place: pointers into the buffer remain valid.
  if (copy == MAP_FAILED || map_shared(bytes_, size_bytes_, fd, MAP_FIXED) == MAP_FAILED) {
    ::close(fd);
    return -ENOMEM;
  }
  return fd_ = fd;
}

bool Buffer::is_present() const {
  if (!is_users_) return true;
  for (uint64_t at = 0; at < size_bytes_; at += kPageBytes) {
    uint8_t byte = 0;
    if (copy_from_user(&byte, reinterpret_cast<uintptr_t>(bytes_) + at, 1) != 0) return false;
  }
  return true;
}

std::optional<JobId> Buffer::busy(const Jobs& jobs, bool with_readers) const {
  if (jobs.all_finished()) return std::nullopt;
  for (const Use& use : uses_) {
    if ((use.writes || with_readers) && !jobs.is_finished(use.job)) return use.job;
  }
  return std::nullopt;
}

std::optional<JobId> Buffer::last_writer(const Jobs& jobs) const {
  const auto last = std::ranges::find_if(uses_.rbegin(), uses_.rend(),
                                         [&](const Use& use) { return use.writes && !jobs.is_finished(use.job); });
  return last == uses_.rend() ? std::nullopt : std::optional(last->job);
}

void Buffer::add_job(const Jobs& jobs, JobId job, bool writes) {
  std::erase_if(uses_, [&](const Use& use) { return jobs.is_finished(use.job); });
  uses_.push_back({job, writes});
  was_listed_ = true;
}

}  // namespace skillet::fake
