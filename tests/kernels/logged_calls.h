// LoggedCalls: the calls of a client to a kernel, each as text, and the objects that it has not released yet.
// Called by the tests of the clients in kernels/<kernel>/client/.
// Must not know: any single kernel driver.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/api/drm.h"
#include "kernels/api/forwarding_calls.h"

namespace skillet::testing {

// Seconds from now to a CLOCK_MONOTONIC time, rounded; "far" for more than a day.
inline std::string seconds_until(int64_t seconds, int64_t nanoseconds) {
  if (seconds == 0 && nanoseconds == 0) return "0";
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto left = std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanoseconds) - now;
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(left + std::chrono::milliseconds(500)) /
                     std::chrono::seconds(1);
  return left > std::chrono::hours(24) ? "far" : fmt::format("{}", whole);
}

class LoggedCalls final : public kernels::ForwardingCalls {
 public:
  // Returns the text of a call after it was made; empty: no line.
  using Describe = std::function<std::string(unsigned long request, const void* argument)>;

  LoggedCalls(kernels::SyscallsRef below, Describe describe)
      : ForwardingCalls(std::move(below)), describe_(std::move(describe)) {}

  int open(const std::string& path) override {
    const int fd = below_->open(path);
    log_call("open", fd);
    if (fd >= 0) open_files.insert(fd);
    return fd;
  }
  int close(int fd) override {
    const int result = below_->close(fd);
    log_call("close", result);
    if (result == 0) open_files.erase(fd);
    return result;
  }
  int ioctl(int fd, unsigned long request, void* argument) override {
    const int result = below_->ioctl(fd, request, argument);
    std::string text = describe_(request, argument);
    if (request == kernels::drm::kGemClose)
      text = fmt::format("gem_close {}", static_cast<const kernels::drm::GemClose*>(argument)->handle);
    if (!text.empty()) log_call(text, result);
    return result;
  }
  int mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) override {
    const int result = below_->mmap(fd, size_bytes, offset, bytes);
    log_call(fmt::format("mmap {} at {:#x}", size_bytes, offset), result);
    if (result == 0) mapped.emplace(bytes, size_bytes);
    return result;
  }
  int munmap(uint8_t* bytes, uint64_t size_bytes) override {
    const auto known = mapped.find(bytes);
    log_call(known == mapped.end() ? "munmap of what is not mapped" : fmt::format("munmap {}", size_bytes), 0);
    if (known != mapped.end() && known->second == size_bytes) mapped.erase(known);
    return below_->munmap(bytes, size_bytes);
  }
  void pause(std::chrono::nanoseconds time) override {
    paused += time;
    below_->pause(time);
  }

  // Returns the lines since the last call of take().
  std::string take() { return std::exchange(log_, {}); }

  std::set<int> open_files;
  std::chrono::nanoseconds paused{0};  // not logged, as it depends on the host
  std::multimap<uint8_t*, uint64_t> mapped;

 private:
  void log_call(std::string_view text, int result) {
    log_ += fmt::format("{}{}\n", text, result < 0 ? fmt::format(": -{}", -result) : "");
  }
  Describe describe_;
  std::string log_;
};

}  // namespace skillet::testing
