// Files that this user keeps for later, in folders that others may write to: they are read only if they are ours, and
// replaced atomically.
// Called by the program cache, and where recordings replace each other.
// Must not know: what is in them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet {

// Checks the first bytes of a file of `size_bytes`. Error: the rest is not read.
using CheckStart = std::function<Result<void>(std::span<const uint8_t> start, uint64_t size_bytes)>;
inline constexpr size_t kStartBytes = 256;  // or all, if the file has fewer
inline constexpr size_t kReadAlignment = 64;

// The bytes of a regular file of this user that no other user can write, at a multiple of kReadAlignment. They are a
// copy, which later changes of the file do not affect. Follows no link, never blocks. None: the file does not exist.
Result<std::optional<SharedBytes>> read_own_file(const std::string& path, uint64_t limit_bytes,
                                                 const CheckStart& check_start);

// PATH with a random suffix, so that nobody can have put a link there.
Result<std::string> temporary_name(const std::string& path);

// Replaces `path` with the concatenated `parts`, readable by this user only. Whatever happens, power loss included, the
// result is the old file or the new one. Any number of threads and processes may call it at the same time: the last one
// wins.
Result<void> replace_own_file(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts);

// Locks PATH.lock, so that other processes using this lock do not change `path` between a read and a replacement. If
// the lock cannot be taken (no folder, read-only, held for too long by a process that replaces nothing), work goes on
// without it, and the last writer wins. An empty path: no lock.
class OwnFileLock {
 public:
  // Waits for another program that holds it, up to `patience` after `path` was last replaced.
  explicit OwnFileLock(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(1));
  OwnFileLock(OwnFileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)), is_busy_(other.is_busy_) {}
  OwnFileLock(const OwnFileLock&) = delete;
  OwnFileLock& operator=(const OwnFileLock&) = delete;
  ~OwnFileLock();
  // True if another program held it all the time.
  bool is_busy() const { return is_busy_; }

 private:
  int fd_ = -1;
  bool is_busy_ = false;
};

}  // namespace skillet
