// Hooks of the recording library: ioctl, and calls that copy or close descriptors.
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "base/environment.h"
#include "capture/file_writer.h"
#include "kernels/api/drm.h"
#include "kernels/api/recorder.h"
#include "lab/interpose/environment.h"
#include "lab/interpose/guard.h"
#include "lab/interpose/libc.h"

namespace skillet::interpose {
namespace {

constexpr const char* kDefaultPath = "capture.skcap";

int negative_errno(int result) { return result < 0 ? -errno : result; }

// The C library's own calls.
class LibcCalls final : public kernels::Syscalls {
 public:
  int open(const std::string& path) override { return negative_errno(libc::open(path.c_str(), O_RDWR | O_CLOEXEC, 0)); }
  int close(int fd) override { return negative_errno(libc::close(fd)); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    return negative_errno(libc::ioctl(fd, request, argument));
  }
  int mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) override {
    void* const mapped = libc::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) return -errno;
    bytes = static_cast<uint8_t*>(mapped);
    return 0;
  }
  int munmap(uint8_t* bytes, uint64_t size_bytes) override { return negative_errno(::munmap(bytes, size_bytes)); }
  std::string compatible(int fd) override { return kernels::system_calls()->compatible(fd); }
  std::vector<std::string> driven_devices(std::string_view driver) override {
    return kernels::sysfs_driven_devices(driver);
  }
};

// The kernel's name of the node behind an open file.
std::string node_name(int fd) {
  constexpr std::string_view kKey = "DEVNAME=";
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {};  // not libc::fstat(), which may be that of a virtual node
  const std::string number = fmt::format("{}:{}", major(status.st_rdev), minor(status.st_rdev));
  std::ifstream event(fmt::format("/sys/dev/char/{}/uevent", number));
  for (std::string line; std::getline(event, line);) {
    if (line.starts_with(kKey)) return "/dev/" + line.substr(kKey.size());
  }
  return number;
}

const kernels::SyscallsRef& libc_calls() {
  static const kernels::SyscallsRef* const kCalls = new kernels::SyscallsRef(std::make_shared<LibcCalls>());
  return *kCalls;
}

// The recorder of the file behind `fd`, with a capture file of its own; null for files of other drivers.
std::shared_ptr<kernels::FileRecorder> start_recording(int fd) {
  const char* const path = environment_variable(kCaptureVariable);
  capture::Sink sink = capture::into_next_file(path == nullptr ? kDefaultPath : path);
  auto recorder = kernels::recorder_of(libc_calls(), fd, node_name(fd), std::move(sink));
  const char* const traces = environment_variable(kCaptureTraceVariable);
  if (recorder != nullptr && traces != nullptr && traces == std::string_view("1")) recorder->trace();
  return recorder;
}

using Recorder = kernels::FileRecorder;

// The descriptors on which the process called a DRM ioctl: their file, or null for other drivers.
class Files {
 public:
  static Files& instance() {
    static Files* const kInstance = new Files;  // never destroyed: hooks run until the very end of a process
    return *kInstance;
  }
  static bool any() { return any_.load(std::memory_order_acquire); }
  // Takes no lock: threads of a virtual node close their own files, which are not followed, while fork() holds it.
  bool may_follow(int fd) const {
    return fd >= 0 && (static_cast<size_t>(fd) >= kMarked || marked_[static_cast<size_t>(fd)].load());
  }

  std::shared_ptr<Recorder> find_or_add(int fd) {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(fd);
    if (found != files_.end()) return found->second;
    any_.store(true, std::memory_order_release);
    return put(fd, start_recording(fd));
  }
  void copied(int from, int to) {
    if (to < 0 || from == to || (!may_follow(from) && !may_follow(to))) return;
    std::shared_ptr<Recorder> replaced;
    const std::lock_guard lock(mutex_);
    if (const auto old = files_.find(to); old != files_.end()) replaced = std::move(old->second);
    const auto found = files_.find(from);
    if (found == files_.end()) {
      drop(to);
    } else {
      put(to, found->second);
    }
  }
  // Ends the file after the lock is released, because the file closes descriptors itself.
  void closed(int fd) {
    if (!may_follow(fd)) return;
    std::shared_ptr<Recorder> ended;
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(fd);
    if (found == files_.end()) return;
    ended = std::move(found->second);
    drop(fd);
  }
  // Around fork(): a child gets consistent data, and no lock that another thread of its parent held. While this waits
  // for the lock of a busy file, perhaps with a job of a thread that needs this object, it holds no other lock.
  void lock_all() {
    std::shared_ptr<Recorder> busy;
    for (;;) {
      if (busy != nullptr) busy->mutex().lock();
      mutex_.lock();
      const auto all = recorders();
      auto failed = all.begin();
      while (failed != all.end() && (*failed == busy || (*failed)->mutex().try_lock())) ++failed;
      const bool is_gone = busy != nullptr && !all.contains(busy);
      if (is_gone) busy->mutex().unlock();
      if (failed == all.end()) return;
      for (auto one = all.begin(); one != failed; ++one)
        if (*one != busy) (*one)->mutex().unlock();
      mutex_.unlock();
      if (busy != nullptr && !is_gone) busy->mutex().unlock();
      busy = *failed;
    }
  }
  void unlock_all() {
    for (const auto& one : recorders()) one->mutex().unlock();
    mutex_.unlock();
  }
  // A child records to its own files, from the next call on.
  void start_anew() {
    unlock_all();
    while (!files_.empty()) drop(files_.begin()->first);
    owner_ = ::getpid();
  }
  // A child after vfork() shares its parent's memory, but not its parent's descriptors.
  bool is_ours() const { return owner_ == ::getpid(); }

 private:
  Files() : owner_(::getpid()) {}
  static inline constinit std::atomic<bool> any_{false};
  static constexpr size_t kMarked = 65536;  // descriptors; larger ones always count as possibly followed

  const std::shared_ptr<Recorder>& put(int fd, std::shared_ptr<Recorder> file) {
    if (static_cast<size_t>(fd) < kMarked) marked_[static_cast<size_t>(fd)] = true;
    return files_[fd] = std::move(file);
  }
  void drop(int fd) {
    files_.erase(fd);
    if (static_cast<size_t>(fd) < kMarked) marked_[static_cast<size_t>(fd)] = false;
  }
  // Each recorder once: copies of a descriptor share one.
  std::set<std::shared_ptr<Recorder>> recorders() const {
    std::set<std::shared_ptr<Recorder>> all;
    for (const auto& [fd, file] : files_) {
      if (file != nullptr) all.insert(file);
    }
    return all;
  }

  std::mutex mutex_;
  std::map<int, std::shared_ptr<Recorder>> files_;
  std::array<std::atomic<bool>, kMarked> marked_{};  // descriptors in files_
  pid_t owner_;
};

// Handlers of fork() run in reverse order of registration. This library must lock before the virtual node behind it,
// and its constructor runs after those of the libraries behind it.
__attribute__((constructor)) void guard_forks() {
  ::pthread_atfork([] { Files::instance().lock_all(); }, [] { Files::instance().unlock_all(); },
                   [] { Files::instance().start_anew(); });
}

bool follows() { return Files::any() && Files::instance().is_ours(); }

int copied(int from, int to) {
  if (!follows()) return to;
  return guarded(to, [&] {
    Files::instance().copied(from, to);
    return to;
  });
}

// While set, calls of this thread come from this library.
thread_local bool t_is_inside __attribute__((tls_model("initial-exec"))) = false;

struct Inside {
  Inside() { t_is_inside = true; }
  ~Inside() { t_is_inside = false; }
  Inside(const Inside&) = delete;
};

int record_ioctl(int fd, unsigned long request, void* argument) {
  const Inside inside;
  const int number = errno;
  const int result = guarded(-ENOMEM, [&] {
    const auto file = Files::instance().find_or_add(fd);
    return file == nullptr ? libc_calls()->ioctl(fd, request, argument) : file->ioctl(fd, request, argument);
  });
  errno = result < 0 ? -result : number;
  return result < 0 ? -1 : result;
}

int control(int fd, int command, void* argument) {
  const int result = libc::fcntl(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, result) : result;
}

}  // namespace
}  // namespace skillet::interpose

using namespace skillet;
using namespace skillet::interpose;

SK_HOOK(int, ioctl, (int fd, unsigned long request, ...)) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) != kernels::drm::kType || t_is_inside) return libc::ioctl(fd, request, argument);
  return record_ioctl(fd, request, argument);
}

SK_HOOK(int, close, (int fd)) {
  // Before the close: afterwards another thread may have the descriptor's number.
  if (follows() && !t_is_inside) guarded(false, [&] { return Files::instance().closed(fd), true; });
  return libc::close(fd);
}

SK_HOOK(int, dup, (int fd)) { return copied(fd, libc::dup(fd)); }
SK_HOOK(int, dup2, (int from, int to)) { return copied(from, libc::dup2(from, to)); }
SK_HOOK(int, dup3, (int from, int to, int flags)) { return copied(from, libc::dup3(from, to, flags)); }

SK_HOOK(int, fcntl, (int fd, int command, ...)) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument);
}
SK_HOOK_ALIAS(int, fcntl64, (int fd, int command, ...), fcntl);
