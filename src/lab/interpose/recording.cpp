#include "lab/interpose/recording.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <fstream>

#include "base/environment.h"
#include "capture/file_writer.h"
#include "lab/interpose/environment.h"
#include "lab/interpose/libc.h"

namespace skillet::interpose {
namespace {

constexpr const char* kDefaultPath = "capture.skcap";

int negative_errno(int result) { return result < 0 ? -errno : result; }

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

}  // namespace

const kernels::SyscallsRef& libc_calls() {
  static const kernels::SyscallsRef* const kCalls = new kernels::SyscallsRef(std::make_shared<LibcCalls>());
  return *kCalls;
}

std::shared_ptr<kernels::FileRecorder> start_recording(int fd) {
  const char* const path = environment_variable(kCaptureVariable);
  capture::Sink sink = capture::into_next_file(path == nullptr ? kDefaultPath : path);
  auto recorder = kernels::recorder_of(libc_calls(), fd, node_name(fd), std::move(sink));
  const char* const traces = environment_variable(kCaptureTraceVariable);
  if (recorder != nullptr && traces != nullptr && traces == std::string_view("1")) recorder->trace();
  return recorder;
}

}  // namespace skillet::interpose
