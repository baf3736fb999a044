// Hooks of the recording library: ioctl, and calls that copy or close descriptors.
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "kernels/api/drm.h"
#include "lab/interpose/guard.h"
#include "lab/interpose/libc.h"
#include "lab/interpose/recording.h"

namespace skillet::interpose {
namespace {

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
