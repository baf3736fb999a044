#include "interpose/gem_buffer.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "interpose/libc.h"

namespace skillet::interpose {
namespace {

constexpr uint64_t kPageMask = 4095;
constexpr rlim_t kWantedFiles = 65536;
constexpr int kFirstBufferFd = 16384;  // far from the numbers that the process sees

// Buffers of a kernel cost no descriptors of the process: make room for ours, and keep them out of its way.
int lowest_buffer_fd() {
  static const int lowest = [] {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur < kWantedFiles) {
      limit.rlim_cur = std::min(limit.rlim_max, kWantedFiles);
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur > 2 * kFirstBufferFd ? kFirstBufferFd : 0;
  }();
  return lowest;
}

using Identity = std::pair<dev_t, ino_t>;
struct Known {
  std::mutex mutex;
  std::map<Identity, std::weak_ptr<GemBuffer>> buffers;
};
Known& known() {
  static Known* const kKnown = new Known;  // never destroyed: hooks run until the very end of a process
  return *kKnown;
}

bool identify(int fd, struct stat& status) { return libc::fstat(fd, &status) == 0 && S_ISREG(status.st_mode); }

}  // namespace

int GemBuffer::adopt(int fd, uint64_t size_bytes, std::shared_ptr<GemBuffer>& out) {
  struct stat status {};
  void* const bytes = libc::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, off_t{0});
  if (bytes == MAP_FAILED || !identify(fd, status)) {
    if (bytes != MAP_FAILED) ::munmap(bytes, size_bytes);
    libc::close(fd);
    return -ENOMEM;
  }
  out.reset(new GemBuffer);
  out->fd_ = fd;
  out->bytes_ = static_cast<uint8_t*>(bytes);
  out->size_bytes_ = size_bytes;
  const std::lock_guard lock(known().mutex);
  known().buffers[{status.st_dev, status.st_ino}] = out;
  return 0;
}

int GemBuffer::create(uint64_t size_bytes, std::shared_ptr<GemBuffer>& out) {
  const int low = ::memfd_create("skillet-buffer", MFD_CLOEXEC);
  if (low < 0) return -ENOMEM;
  int fd = libc::fcntl(low, F_DUPFD_CLOEXEC, lowest_buffer_fd());
  if (fd >= 0) {
    libc::close(low);
  } else {
    fd = low;
  }
  if (::ftruncate(fd, static_cast<off_t>(size_bytes)) != 0) {
    libc::close(fd);
    return -ENOMEM;
  }
  return adopt(fd, size_bytes, out);
}

int GemBuffer::of_user_memory(uint64_t pointer, uint64_t size_bytes, std::shared_ptr<GemBuffer>& out) {
  out.reset(new GemBuffer);
  out->bytes_ = reinterpret_cast<uint8_t*>(pointer);
  out->size_bytes_ = size_bytes;
  return out->is_present() ? 0 : -EFAULT;
}

int GemBuffer::import(int fd, std::shared_ptr<GemBuffer>& out) {
  struct stat status {};
  if (!identify(fd, status)) return -EBADF;
  if (status.st_size == 0 || (static_cast<uint64_t>(status.st_size) & kPageMask) != 0) return -EINVAL;
  {
    const std::lock_guard lock(known().mutex);
    const auto found = known().buffers.find({status.st_dev, status.st_ino});
    if (found != known().buffers.end() && (out = found->second.lock()) != nullptr) return 0;
  }
  const int own = libc::fcntl(fd, F_DUPFD_CLOEXEC, lowest_buffer_fd());
  if (own < 0) return -EMFILE;
  return adopt(own, static_cast<uint64_t>(status.st_size), out);
}

GemBuffer::~GemBuffer() {
  if (fd_ < 0) return;
  struct stat status {};
  if (identify(fd_, status)) {
    const std::lock_guard lock(known().mutex);
    const auto found = known().buffers.find({status.st_dev, status.st_ino});
    if (found != known().buffers.end() && found->second.expired()) known().buffers.erase(found);
  }
  ::munmap(bytes_, size_bytes_);
  libc::close(fd_);
}

std::vector<JobRef> GemBuffer::jobs(bool with_readers) const {
  const std::lock_guard lock(jobs_mutex_);
  std::vector<JobRef> found = with_readers ? users_ : std::vector<JobRef>{last_writer_};
  std::erase_if(found, [](const JobRef& job) { return job == nullptr || job->finished; });
  return found;
}

void GemBuffer::add_job(const JobRef& job, bool writes) {
  const std::lock_guard lock(jobs_mutex_);
  std::erase_if(users_, [](const JobRef& one) -> bool { return one->finished; });
  users_.push_back(job);
  if (writes) last_writer_ = job;
}

bool GemBuffer::is_present() const {
  // msync() fails with ENOMEM when a part of the range is not mapped, and does nothing else here.
  return fd_ >= 0 || ::msync(bytes_, size_bytes_, MS_ASYNC) == 0;
}

}  // namespace skillet::interpose
