// DrmFile: an open node of a DRM driver, and its ioctls with every failure put into words.
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

// "EBUSY"; the number for names nobody needs.
std::string errno_name(int number);

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kShortPatience{10};

// The moment `timeout` from now, in ns of CLOCK_MONOTONIC.
int64_t deadline(std::chrono::nanoseconds timeout);

class DrmFile {
 public:
  static Result<DrmFile> open(const SyscallsRef& calls, const std::string& node);
  // The same; nothing when there is no such node.
  static Result<std::optional<DrmFile>> open_if_there(const SyscallsRef& calls, const std::string& node);
  // An open file that stays the caller's.
  static DrmFile borrow(const SyscallsRef& calls, int fd, const std::string& node);
  DrmFile(DrmFile&& other) noexcept;
  DrmFile& operator=(DrmFile&&) = delete;
  ~DrmFile();

  const std::string& node() const { return node_; }
  int fd() const { return fd_; }
  void close();
  // The kernel closes it when the process ends.
  void leave_open() { is_own_ = false; }
  Syscalls& calls() const { return *calls_; }
  // One ioctl, repeated for at most `patience` while signals interrupt it or the errno is `passing`, or kShortPatience
  // after one on this file was never let through: no row of calls waits for long. The errno, or 0.
  int try_call(unsigned long request, void* argument, std::chrono::nanoseconds patience = kPatience,
               int passing = EINTR) const;
  // The same; `what` names the attempt in errors.
  Result<void> call(unsigned long request, void* argument, std::string_view what,
                    std::chrono::nanoseconds patience = kPatience) const;
  // A buffer's handle goes; a failure is a line in the log.
  void close_buffer(uint32_t handle) const;
  // Maps a buffer, at its offset in the file, to `bytes`.
  Result<void> map_buffer(uint32_t handle, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) const;
  // A descriptor of the buffer's memory, which the caller closes.
  Result<int> export_buffer(uint32_t handle) const;
  // Waits while another file of the node has a turn. Where nobody knows of turns, there are none.
  Result<void> take_turn() const;
  // What failed and what to do: "/dev/dri/renderD128: allocating a buffer of 4096 bytes: ENOMEM (...): advice".
  Error failure(int number, std::string_view what) const;

  // The same, of a CPU access to a buffer that was waited for in vain.
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
  bool is_own_ = true;                                 // closed at the end
  mutable std::atomic<bool> was_interrupted_ = false;  // for as long as a call has patience
};

}  // namespace skillet::kernels
