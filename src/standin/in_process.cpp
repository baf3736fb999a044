#include "standin/in_process.h"

#include <pthread.h>

#include <cerrno>
#include <cstddef>
#include <new>
#include <vector>

namespace skillet::standin {
namespace {

// All that there are: around a fork() every lock is held by the thread that forks, so that the child finds none taken.
struct Registry {
  std::mutex mutex;
  std::vector<InProcess*> all;

  // Never destroyed, because kernels may end after static objects do, and nothing is left on the heap when the last one
  // is gone: libraries are loaded and unloaded.
  static Registry& instance() {
    alignas(Registry) static std::byte place[sizeof(Registry)];
    static Registry* const kInstance = [] {
      ::pthread_atfork([] { instance().lock(); }, [] { instance().unlock(); }, [] { instance().unlock(); });
      return new (place) Registry;
    }();
    return *kInstance;
  }
  void lock() {
    mutex.lock();
    for (InProcess* one : all) one->lock_all();
  }
  void unlock() {
    for (InProcess* one : all) one->unlock_all();
    mutex.unlock();
  }
};

}  // namespace

InProcess::InProcess(std::unique_ptr<Kernel> kernel, std::string node)
    : kernel_(std::move(kernel)), node_(std::move(node)), minor_(kernel_->place().nodes.back().minor) {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  registry.all.push_back(this);
}

InProcess::~InProcess() {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  std::erase(registry.all, this);
  registry.all.shrink_to_fit();
}

void InProcess::lock_all() {
  mutex_.lock();
  kernel_->lock_all();
}

void InProcess::unlock_all() {
  kernel_->unlock_all();
  mutex_.unlock();
}

int InProcess::open(const std::string& path) {
  if (path != node_) return -ENOENT;
  std::shared_ptr<File> file;
  if (const int failure = kernel_->open(minor_, file); failure != 0) return failure;
  const std::lock_guard lock(mutex_);
  files_[++last_fd_] = std::move(file);
  return last_fd_;
}

std::shared_ptr<File> InProcess::find(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(fd);
  return found == files_.end() ? nullptr : found->second;
}

int InProcess::close(int fd) {
  std::shared_ptr<File> last;  // ends after the lock
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(fd);
  if (found == files_.end()) return -EBADF;
  last = std::move(found->second);
  files_.erase(found);
  return 0;
}

int InProcess::ioctl(int fd, unsigned long request, void* argument) {
  const std::shared_ptr<File> file = find(fd);
  return file == nullptr ? -EBADF : file->ioctl(request, argument);
}

int InProcess::mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) {
  const std::shared_ptr<File> file = find(fd);
  if (file == nullptr) return -EBADF;
  std::shared_ptr<Buffer> buffer;
  if (const int failure = file->find_mapping(size_bytes, offset, buffer); failure != 0) return failure;
  bytes = buffer->bytes().data();
  return 0;
}

int InProcess::munmap(uint8_t* /*bytes*/, uint64_t /*size_bytes*/) { return 0; }

std::string InProcess::compatible(int /*fd*/) { return kernel_->place().compatible; }

std::vector<std::string> InProcess::driven_devices(std::string_view driver) {
  std::vector<std::string> names;
  const NodePlace place = kernel_->place();
  if (place.driver != driver) return names;
  for (const NodePlace::Device& one : place.cores) names.push_back(one.compatible);
  return names;
}

}  // namespace skillet::standin
