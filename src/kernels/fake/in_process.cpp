#include "kernels/fake/in_process.h"

#include <cerrno>
#include <vector>

namespace skillet::fake {

InProcess::InProcess(std::unique_ptr<Kernel> kernel, std::string node)
    : kernel_(std::move(kernel)),
      node_(std::move(node)),
      minor_(kernel_->place().nodes.back().minor),
      files_(std::make_unique<OpenFiles>()) {}

InProcess::~InProcess() {
  if (process_.is_here()) return;
  static_cast<void>(files_.release());
  static_cast<void>(kernel_.release());
}

void InProcess::lock_all() {
  files_->mutex.lock();
  kernel_->lock_all();
}

void InProcess::unlock_all() {
  process_ = OwnProcess();
  kernel_->unlock_all();
  files_->mutex.unlock();
}

int InProcess::open(const std::string& path) {
  if (!process_.is_here()) return -ENODEV;
  if (path != node_) return -ENOENT;
  std::shared_ptr<File> file;
  if (const int failure = kernel_->open(minor_, file); failure != 0) return failure;
  const std::lock_guard lock(files_->mutex);
  files_->by_fd[++last_fd_] = std::move(file);
  return last_fd_;
}

std::shared_ptr<File> InProcess::find(int fd) {
  if (!process_.is_here()) return nullptr;
  const std::lock_guard lock(files_->mutex);
  const auto found = files_->by_fd.find(fd);
  return found == files_->by_fd.end() ? nullptr : found->second;
}

int InProcess::close(int fd) {
  if (!process_.is_here()) return 0;  // the parent's file stays open
  std::shared_ptr<File> last;         // destroyed after unlocking
  const std::lock_guard lock(files_->mutex);
  const auto found = files_->by_fd.find(fd);
  if (found == files_->by_fd.end()) return -EBADF;
  last = std::move(found->second);
  files_->by_fd.erase(found);
  if (files_->turn == fd) files_->turn = 0;
  return 0;
}

int InProcess::take_turn(int fd) {
  const std::lock_guard lock(files_->mutex);
  if (files_->turn == 0) files_->turn = fd;
  return files_->turn == fd ? 0 : -EAGAIN;
}
int InProcess::end_turn(int fd) {
  const std::lock_guard lock(files_->mutex);
  if (files_->turn == fd) files_->turn = 0;
  return 0;
}

int InProcess::no_file() const { return process_.is_here() ? -EBADF : -ENODEV; }

int InProcess::ioctl(int fd, unsigned long request, void* argument) {
  const std::shared_ptr<File> file = find(fd);
  return file == nullptr ? no_file() : file->ioctl(request, argument);
}

int InProcess::mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) {
  const std::shared_ptr<File> file = find(fd);
  if (file == nullptr) return no_file();
  std::shared_ptr<Buffer> buffer;
  if (const int failure = file->find_mapping(size_bytes, offset, buffer); failure != 0) return failure;
  bytes = buffer->bytes().data();
  return 0;
}

std::chrono::nanoseconds InProcess::clock() {
  const auto& clock = kernel_->options().clock;
  return clock == nullptr ? Syscalls::clock() : clock->read();
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

}  // namespace skillet::fake
