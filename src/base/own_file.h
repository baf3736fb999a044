// Files that this user keeps for later, in folders that others may write to: read only when they are what we wrote,
// replaced whole or not at all.
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

// What its first bytes say of a file of `size_bytes`. An error: the rest is not worth reading.
using CheckStart = std::function<Result<void>(std::span<const uint8_t> start, uint64_t size_bytes)>;
inline constexpr size_t kStartBytes = 256;  // or all where it has fewer
inline constexpr size_t kReadAlignment = 64;

// The bytes of a regular file of this user that nobody else may write, at a multiple of kReadAlignment: a copy, which
// stays as it is whatever becomes of the file. No link is followed, nothing waited for. Nothing when there is no such
// file.
Result<std::optional<SharedBytes>> read_own_file(const std::string& path, uint64_t limit_bytes,
                                                 const CheckStart& check_start);

// PATH with an ending nobody foresees, so that nobody has put a link there.
Result<std::string> temporary_name(const std::string& path);

// Puts `parts`, one after the other, in the place of `path`, for this user alone. Whatever happens, power loss too,
// what is there afterwards is the old file or the new one. Any number of threads and processes may do it at once: the
// last one wins.
Result<void> replace_own_file(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts);

// Keeps other processes that ask for the same from changing `path` between a read and a replacement, by PATH.lock. What
// cannot be had (no folder, read-only, held all the time by one that replaces nothing) is done without: then the last
// one wins. An empty path: nothing is kept.
class OwnFileLock {
 public:
  // Waits for another program that has it, up to `patience` after `path` was last replaced.
  explicit OwnFileLock(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(1));
  OwnFileLock(OwnFileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)), is_busy_(other.is_busy_) {}
  OwnFileLock(const OwnFileLock&) = delete;
  OwnFileLock& operator=(const OwnFileLock&) = delete;
  ~OwnFileLock();
  // Another program had it all the time.
  bool is_busy() const { return is_busy_; }

 private:
  int fd_ = -1;
  bool is_busy_ = false;
};

}  // namespace skillet
