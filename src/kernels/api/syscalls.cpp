#include "kernels/api/syscalls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/leaked.h"

namespace skillet::kernels {
namespace {

// Reads it from a device's folder in sysfs.
std::string first_compatible(const std::string& folder) {
  constexpr std::string_view kKey = "OF_COMPATIBLE_0=";
  std::ifstream event(folder + "/uevent");
  for (std::string line; std::getline(event, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  return {};
}

int negative_errno(int result) { return result < 0 ? -errno : result; }

class SystemCalls final : public Syscalls {
 public:
  int open(const std::string& path) override { return negative_errno(::open(path.c_str(), O_RDWR | O_CLOEXEC)); }
  int close(int fd) override { return negative_errno(::close(fd)); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    return negative_errno(::ioctl(fd, request, argument));
  }
  int mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) override {
    void* const mapped =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) return -errno;
    bytes = static_cast<uint8_t*>(mapped);
    return 0;
  }
  int munmap(uint8_t* bytes, uint64_t size_bytes) override { return negative_errno(::munmap(bytes, size_bytes)); }
  int take_turn(int fd) override { return negative_errno(::flock(fd, LOCK_EX | LOCK_NB)); }
  int end_turn(int fd) override { return negative_errno(::flock(fd, LOCK_UN)); }
  std::string compatible(int fd) override;
  std::vector<std::string> driven_devices(std::string_view driver) override { return sysfs_driven_devices(driver); }
};

// From sysfs, which may be hidden in a container.
std::string SystemCalls::compatible(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {};
  return first_compatible(fmt::format("/sys/dev/char/{}:{}/device", major(status.st_rdev), minor(status.st_rdev)));
}

}  // namespace

std::vector<std::string> sysfs_driven_devices(std::string_view driver) {
  std::vector<std::string> names;
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::directory_iterator at(fmt::format("/sys/bus/platform/drivers/{}", driver), failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    if (std::string name = first_compatible(at->path().string()); !name.empty()) names.push_back(std::move(name));
  }
  return names;
}

void Syscalls::pause(std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); }
std::chrono::nanoseconds Syscalls::now() { return std::chrono::steady_clock::now().time_since_epoch(); }
int Syscalls::take_turn(int /*fd*/) { return 0; }
int Syscalls::end_turn(int /*fd*/) { return 0; }
std::chrono::nanoseconds Syscalls::clock() { return Syscalls::now(); }

const SyscallsRef& system_calls() {
  const auto& kCalls = leaked([] { return SyscallsRef(std::make_shared<SystemCalls>()); });
  return kCalls;
}

uint8_t* map_dmabuf(int fd, uint64_t size_bytes, int protection) {
  void* const mapped = ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<uint8_t*>(mapped);
}

void unmap(Syscalls& calls, uint8_t* bytes, uint64_t size_bytes, bool is_dmabuf) {
  if (bytes == nullptr) return;
  if (is_dmabuf) {
    ::munmap(bytes, size_bytes);
  } else {
    calls.munmap(bytes, size_bytes);
  }
}

}  // namespace skillet::kernels
