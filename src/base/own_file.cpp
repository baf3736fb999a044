#include "base/own_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/interruptions.h"
#include "base/text.h"

namespace skillet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp";
constexpr std::chrono::hours kLongestWrite{1};

Error failure(const std::string& path, int number = errno) {
  return error(ErrorCode::io, "{}: {}", path, std::strerror(number));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<void> write_all(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  Interruptions interruptions;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (interruptions.again(written)) continue;
    if (written <= 0) return failure(path, written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Result<void> read_all(int fd, std::span<uint8_t> to, size_t at, const std::string& path) {
  Interruptions interruptions;
  while (!to.empty()) {
    const ssize_t count = ::pread(fd, to.data(), to.size(), static_cast<off_t>(at));
    if (interruptions.again(count)) continue;
    if (count < 0) return failure(path);
    if (count == 0) return error(ErrorCode::io, "{}: was cut off while it was read", path);
    to = to.subspan(static_cast<size_t>(count));
    at += static_cast<size_t>(count);
  }
  return {};
}

// Uses large pages if the system has them: the first access to thousands of small ones takes longer than the copy.
Result<std::shared_ptr<uint8_t>> pages(size_t size_bytes, const std::string& path) {
  constexpr size_t kLargePage = size_t{2} << 20;
  const size_t mapped_bytes = size_bytes + kLargePage;  // it may begin anywhere
  void* const mapped = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return failure(path);
  auto* const first = static_cast<uint8_t*>(mapped);
  uint8_t* const at = first + (kLargePage - reinterpret_cast<uintptr_t>(first) % kLargePage) % kLargePage;
  ::madvise(at, size_bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE  // Linux 5.14
  ::madvise(at, size_bytes, MADV_POPULATE_WRITE);
#endif
  return std::shared_ptr<uint8_t>(at, [=](uint8_t*) { ::munmap(first, mapped_bytes); });
}

// Makes the new name survive a power loss, too.
void sync_folder(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const Descriptor fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) ::fsync(fd.get());
}

// What the names of temporary files for `path` begin with: so much of its name that they are not too long either.
std::string begin_of_temporaries(const std::string& path) {
  constexpr size_t kDigits = 32, kMost = NAME_MAX - 1 - kDigits - kTemporary.size();
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  return path.substr(0, name) + std::string(beginning(std::string_view(path).substr(name), kMost)) + ".";
}

// Removes temporary files of processes that ended while replacing `path`.
void remove_leftovers(const std::string& path) {
  const std::string prefix = fs::path(begin_of_temporaries(path)).filename().string();
  const fs::file_time_type oldest = fs::file_time_type::clock::now() - kLongestWrite;
  std::error_code ec;
  for (fs::directory_iterator it(fs::path(path).parent_path(), ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kTemporary)) continue;
    std::error_code ignored;
    if (it->last_write_time(ignored) < oldest && !ignored) fs::remove(it->path(), ignored);
  }
}

Result<void> fill(int fd, const std::string& path, std::initializer_list<std::span<const uint8_t>> parts) {
  for (const std::span<const uint8_t> part : parts) SK_TRY(write_all(fd, part, path));
  return ::fsync(fd) == 0 ? Result<void>() : failure(path);
}

Result<void> check_own(const struct stat& status, const std::string& path, uint64_t limit_bytes) {
  if (!S_ISREG(status.st_mode)) return error(ErrorCode::io, "{}: is not a regular file", path);
  if (status.st_uid != ::geteuid())
    return error(ErrorCode::io, "{}: belongs to user {}, not {}", path, status.st_uid, ::geteuid());
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return error(ErrorCode::io, "{}: other users may write it", path);
  if (static_cast<uint64_t>(status.st_size) > limit_bytes)
    return error(ErrorCode::io, "{}: {} bytes, more than {}", path, status.st_size, limit_bytes);
  return {};
}

}  // namespace

Result<std::string> temporary_name(const std::string& path) {
  uint64_t random[2];
  if (::getrandom(random, sizeof random, 0) != sizeof random) return failure(path);
  return fmt::format("{}{:016x}{:016x}{}", begin_of_temporaries(path), random[0], random[1], kTemporary);
}

Result<std::optional<SharedBytes>> read_own_file(const std::string& path, uint64_t limit_bytes,
                                                 const CheckStart& check_start) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::optional<SharedBytes>();
  if (fd.get() < 0 && errno == ELOOP) return error(ErrorCode::io, "{}: is a link", path);
  if (fd.get() < 0) return failure(path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return failure(path);
  SK_TRY(check_own(status, path, limit_bytes));
  const auto size = static_cast<size_t>(status.st_size);
  std::array<uint8_t, kStartBytes> buffer;
  const auto start = std::span(buffer).first(std::min(size, buffer.size()));
  SK_TRY(read_all(fd.get(), start, 0, path));
  SK_TRY(check_start(start, size));
  if (size == 0) return std::optional(SharedBytes());
  SK_TRY_ASSIGN(const std::shared_ptr<uint8_t> owner, pages(size, path));
  uint8_t* const bytes = owner.get();
  std::ranges::copy(start, bytes);
  SK_TRY(read_all(fd.get(), std::span(bytes, size).subspan(start.size()), start.size(), path));
  return std::optional(SharedBytes(owner, {bytes, size}));
}

Result<void> replace_own_file(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts) {
  remove_leftovers(path);
  SK_TRY_ASSIGN(const std::string temporary, temporary_name(path));
  const Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return failure(temporary);
  Result<void> done = fill(fd.get(), temporary, parts);
  if (done.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) done = failure(path);
  if (done.ok())
    sync_folder(path);
  else
    ::unlink(temporary.c_str());
  return done;
}

// A text that differs for each file that took this place.
static std::string version_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return fmt::format("{} {}.{:09}", status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

OwnFileLock::OwnFileLock(const std::string& path, std::chrono::milliseconds patience) {
  if (path.empty()) return;
  fd_ = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0 || !check_own(status, path, 0).ok()) return;
  // A program that replaces the file makes progress, so the wait starts again: other programs may get the lock many
  // times.
  constexpr std::chrono::milliseconds kStep{2};
  constexpr int kMaxWaits = 20;
  std::string seen = version_of(path);
  auto waited = kStep * 0, in_all = waited;
  while ((is_busy_ = ::flock(fd_, LOCK_EX | LOCK_NB) != 0) && waited < patience && in_all < kMaxWaits * patience) {
    std::this_thread::sleep_for(kStep);
    std::string now = version_of(path);
    waited = now == seen ? waited + kStep : kStep * 0;
    in_all += kStep;
    seen = std::move(now);
  }
}

OwnFileLock::~OwnFileLock() {
  if (fd_ < 0) return;
  ::flock(fd_, LOCK_UN);  // a child of fork() may have the file open, too
  ::close(fd_);
}

}  // namespace skillet
