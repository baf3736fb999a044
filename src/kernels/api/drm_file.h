// DrmFile: an open node of a DRM driver, and its ioctls, with a message for every failure.
// Called by the devices of kernels/<kernel>/client/ and the search for them (kernels.cpp).
// Must not know: any single kernel driver; buffers, addresses, submissions.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/api/drm.h"
#include "kernels/api/syscalls.h"

namespace skillet::kernels {

// "EBUSY"; the number for unknown ones.
std::string errno_name(int number);

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kShortPatience{10};

// The moment `timeout` from now, in ns of CLOCK_MONOTONIC.
int64_t deadline(std::chrono::nanoseconds timeout);

class DrmFile {
 public:
  static Result<DrmFile> open(const SyscallsRef& calls, const std::string& node);
  // The same; none if the node does not exist.
  static Result<std::optional<DrmFile>> open_if_there(const SyscallsRef& calls, const std::string& node);
  // Wraps an open file that remains the caller's.
  static DrmFile borrow(const SyscallsRef& calls, int fd, const std::string& node);
  DrmFile(DrmFile&& other) noexcept;
  DrmFile& operator=(DrmFile&&) = delete;
  ~DrmFile();

  const std::string& node() const { return node_; }
  int fd() const { return fd_; }
  void close();
  // Leaves closing to the kernel at the end of the process.
  void leave_open() { is_own_ = false; }
  Syscalls& calls() const { return *calls_; }
  // Calls an ioctl and repeats it for at most `patience` while signals interrupt it or the errno is `passing`. After a
  // call on this file was interrupted for all of its patience, only kShortPatience is used, so that a series of calls
  // does not wait for long. Returns the errno, or 0.
  int try_call(unsigned long request, void* argument, std::chrono::nanoseconds patience = kPatience,
               int passing = EINTR) const;
  // The same; `what` names the attempt in errors.
  Result<void> call(unsigned long request, void* argument, std::string_view what,
                    std::chrono::nanoseconds patience = kPatience) const;
  // Closes a buffer's handle; logs a failure.
  void close_buffer(uint32_t handle) const;
  // Maps a buffer, at its offset in the file; sets `bytes`.
  Result<void> map_buffer(uint32_t handle, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) const;
  // A descriptor of the buffer's memory, which the caller closes.
  Result<int> export_buffer(uint32_t handle) const;
  // Waits while another file of the node has a turn. Has no effect if the system calls do not support turns.
  Result<void> take_turn() const;
  // An error with the failed action and advice: "/dev/dri/renderD128: allocating a buffer of 4096 bytes: ENOMEM (...):
  // advice".
  Error failure(int number, std::string_view what) const;

  // The same for a CPU access to a buffer whose wait timed out.
  Error access_failure(int number, uint32_t handle, bool write, std::chrono::seconds timeout) const;

  // The driver's name, such as "panfrost"; its interface version.
  struct Version {
    std::string name;
    int major = 0, minor = 0;
  };
  Result<Version> version() const;

 private:
  DrmFile(SyscallsRef calls, int fd, std::string node) : calls_(std::move(calls)), fd_(fd), node_(std::move(node)) {}
  SyscallsRef calls_;
  int fd_;
  std::string node_;
  bool is_own_ = true;                                 // closed by the destructor
  mutable std::atomic<bool> was_interrupted_ = false;  // an earlier call was interrupted for all of its patience
};

}  // namespace skillet::kernels
