#include "base/bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/caught.h"
#include "base/interruptions.h"
#include "base/own_file.h"

namespace skillet {

static_assert(std::endian::native == std::endian::little, "load_le/store_le assume a little-endian host");

namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 31;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Error os_error(const std::string& path) { return error(ErrorCode::io, "{}: {}", path, std::strerror(errno)); }

// Empty for a regular file.
std::string_view other_kind(mode_t mode) {
  if (S_ISREG(mode)) return {};
  if (S_ISDIR(mode)) return "a folder";
  return S_ISFIFO(mode) || S_ISSOCK(mode) ? "a pipe" : "a device";
}

Result<size_t> size_of(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return os_error(path);
  if (const auto kind = other_kind(status.st_mode); !kind.empty())
    return error(ErrorCode::io, "{}: is {}, not a file", path, kind);
  return static_cast<size_t>(status.st_size);
}

// Reads to the end of the file, or until `bytes` is full; true: the end was reached.
Result<bool> fill(int fd, const std::string& path, Bytes& bytes) {
  Interruptions interruptions;
  for (size_t got = 0; got < bytes.size();) {
    const ssize_t now = ::read(fd, bytes.data() + got, bytes.size() - got);
    if (interruptions.again(now)) continue;
    if (now < 0) return os_error(path);
    if (now == 0) {
      bytes.resize(got);
      return true;
    }
    got += static_cast<size_t>(now);
  }
  return false;
}

bool write_all(int fd, std::span<const uint8_t> bytes) {
  Interruptions interruptions;
  while (!bytes.empty()) {
    const ssize_t now = ::write(fd, bytes.data(), bytes.size());
    if (interruptions.again(now)) continue;
    if (now < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(now));
  }
  return true;
}

}  // namespace

// With O_NONBLOCK a pipe without a writer can be opened, and is then refused.
Result<Bytes> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return os_error(path);
  SK_TRY_ASSIGN(const size_t size_bytes, size_of(file.get(), path));
  Bytes bytes;
  if (size_bytes <= kMaxFileBytes) bytes.resize(size_bytes + 1);  // one more byte, to detect the end
  SK_TRY_ASSIGN(const bool whole, fill(file.get(), path, bytes));
  if (!whole && size_bytes > kMaxFileBytes) return error(ErrorCode::io, "{}: is larger than 2 GiB", path);
  if (!whole) return error(ErrorCode::io, "{}: grew while it was read", path);
  return bytes;
}

Result<Bytes> read_file_start(const std::string& path, size_t size_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return os_error(path);
  SK_TRY(size_of(file.get(), path));
  Bytes bytes(size_bytes);
  SK_TRY(fill(file.get(), path, bytes));
  return bytes;
}

namespace {

// A link to nothing: stat() does not find it, but neither a file nor a folder can be created there.
bool is_link_to_nothing(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}
Error link_to_nothing(const std::string& path) {
  return error(ErrorCode::io, "{}: is a link to a file that does not exist", path);
}

// Writes a file beside `target` and renames it when it is complete; it gets the mode of the file that it replaces.
// None: no file can be created there.
std::optional<Result<void>> write_beside(const std::string& path, const std::string& target, std::optional<mode_t> mode,
                                         std::span<const uint8_t> bytes) {
  const Result<std::string> beside = temporary_name(target);
  if (!beside.ok()) return std::nullopt;
  Descriptor file(::open(beside->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return std::nullopt;
  const bool has_mode = !mode || ::fchmod(file.get(), *mode & 07777) == 0;
  const bool written = has_mode && write_all(file.get(), bytes);
  int failure = errno;
  const bool closed = file.close();
  if (written && !closed) failure = errno;
  if (written && closed) {
    if (::rename(beside->c_str(), target.c_str()) == 0) return Result<void>();
    failure = errno;
  }
  ::unlink(beside->c_str());
  errno = failure;
  return os_error(path);
}

bool overwrite(int fd, std::span<const uint8_t> bytes) {
  return ::lseek(fd, 0, SEEK_SET) == 0 && write_all(fd, bytes) &&
         ::ftruncate(fd, static_cast<off_t>(bytes.size())) == 0;
}

// For files that cannot be replaced: with several names, of another user, or in a read-only folder. They are not
// truncated first, so that the old contents can be restored.
Result<void> write_in_place(const std::string& path, bool is_there, std::span<const uint8_t> bytes) {
  const Result<Bytes> old = is_there ? read_file(path) : Bytes();
  Descriptor file(::open(path.c_str(), O_WRONLY | (is_there ? 0 : O_CREAT) | O_CLOEXEC, 0666));
  if (file.get() < 0) return os_error(path);
  const bool written = overwrite(file.get(), bytes);
  int failure = errno;
  if (!written && is_there && old.ok()) overwrite(file.get(), *old);
  const bool closed = file.close();
  if (written && closed) return {};
  if (written) failure = errno;
  if (!is_there) ::unlink(path.c_str());
  errno = failure;
  return os_error(path);
}

// For a device, such as /dev/null, or a pipe.
Result<void> write_stream(const std::string& path, std::span<const uint8_t> bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 && write_all(file.get(), bytes) && file.close() ? Result<void>() : os_error(path);
}

}  // namespace

// A file that could not be written completely does not exist afterwards, and the old file is kept, even if the process
// ends during the write.
Result<void> write_file(const std::string& path, std::span<const uint8_t> bytes) {
  struct stat old {};
  const bool is_there = ::stat(path.c_str(), &old) == 0;
  if (is_there && !S_ISREG(old.st_mode)) return write_stream(path, bytes);
  if (!is_there && !is_link_to_nothing(path)) {
    if (auto done = write_beside(path, path, std::nullopt, bytes)) return std::move(*done);
  }
  if (is_there && old.st_nlink == 1 && old.st_uid == ::geteuid() && ::access(path.c_str(), W_OK) == 0) {
    // A link is kept: the file that it points to is replaced.
    const std::unique_ptr<char, decltype(&std::free)> target(::realpath(path.c_str(), nullptr), &std::free);
    if (target != nullptr) {
      if (auto done = write_beside(path, target.get(), old.st_mode, bytes)) return std::move(*done);
    }
  }
  return write_in_place(path, is_there, bytes);
}

namespace {

// Uses another name, so that an interrupted process leaves no empty file that looks like a result.
int open_probe(const std::string& path, std::string& probe) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const Result<std::string> beside = temporary_name(path);
  probe = beside.ok() ? *beside : path;
  const int fd = ::open(probe.c_str(), kFlags, 0600);
  if (fd >= 0 || errno != ENAMETOOLONG) return fd;
  probe = path;
  return ::open(probe.c_str(), kFlags, 0600);
}

}  // namespace

Result<void> check_place(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return error(ErrorCode::io, "{}: is a folder, not a file", path);
    if (S_ISFIFO(status.st_mode)) return error(ErrorCode::io, "{}: is a pipe, not a file", path);
    if (S_ISSOCK(status.st_mode)) return error(ErrorCode::io, "{}: is a socket, not a file", path);
    return ::access(path.c_str(), W_OK) == 0 ? Result<void>() : os_error(path);
  }
  if (errno != ENOENT) return os_error(path);
  if (is_link_to_nothing(path)) return link_to_nothing(path);
  std::string probe;
  const int fd = open_probe(path, probe);
  if (fd < 0) return os_error(path);
  ::close(fd);
  ::unlink(probe.c_str());
  return {};
}

Result<void> check_folder(const std::string& path) {
  struct stat status {};
  std::string there = path;
  while (::stat(there.empty() ? "." : there.c_str(), &status) != 0) {
    if (errno != ENOENT || there.empty()) return os_error(path);
    if (is_link_to_nothing(there)) return link_to_nothing(there);
    const size_t slash = there.find_last_of('/');
    there = slash == std::string::npos ? "" : slash == 0 && there.size() > 1 ? "/" : there.substr(0, slash);
  }
  if (!S_ISDIR(status.st_mode)) return error(ErrorCode::io, "{}: {}", path, std::strerror(ENOTDIR));
  // An existing folder may be read-only and still contain the files.
  if (there == path) return ::access(path.c_str(), R_OK | X_OK) == 0 ? Result<void>() : os_error(path);
  std::string probe = fmt::format("{}/skillet.XXXXXX", there.empty() ? "." : there);
  if (::mkdtemp(probe.data()) == nullptr) return os_error(path);
  ::rmdir(probe.c_str());
  return {};
}

Result<void> check_files(const std::string& folder, std::span<const std::string> names) {
  SK_TRY(check_folder(folder));
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return {};  // it will be created
  for (const std::string& name : names) SK_TRY(check_place(folder + "/" + name));
  if (!names.empty()) return {};
  std::string probe = folder + "/skillet.XXXXXX";
  const Descriptor file(::mkostemp(probe.data(), O_CLOEXEC));
  if (file.get() < 0) return os_error(folder);
  ::unlink(probe.c_str());
  return {};
}

void remove_folder(const std::string& path) noexcept {
  tidy("removing a folder", [&]() -> Result<void> {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    return {};
  });
}

}  // namespace skillet
