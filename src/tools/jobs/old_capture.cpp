#include "tools/jobs/old_capture.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/own_file.h"
#include "capture/reader.h"
#include "lab/interpose/environment.h"

namespace skillet::tools {
namespace {

std::optional<struct stat> look_at(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? std::optional(status) : std::nullopt;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

Result<void> check_is_capture(const std::string& path) {
  struct stat status {};
  const auto old = ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)
                       ? capture::Reader::open(path)
                       : Result<capture::Reader>(error(ErrorCode::malformed, ""));
  if (!old.ok() && old.error().code != ErrorCode::unsupported)
    return error(ErrorCode::invalid_argument, "{} exists and is not a capture file", path);
  return {};
}

// The writer of a capture holds a lock on the file.
Result<void> check_is_finished(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};  // not readable, or removed: set_aside() reports it
  const bool in_use = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return in_use ? Result<void>(error(ErrorCode::io, "{}: another recording is being written there", path))
                : Result<void>();
}

// A program under `skillet capture` must not record to the same file as `skillet capture` does.
Result<void> check_is_own(const std::string& path) {
  namespace fs = std::filesystem;
  const char* const outer = environment_variable(interpose::kCaptureVariable);
  if (outer == nullptr) return {};
  std::error_code failure;
  const std::string own = fs::weakly_canonical(path, failure).string(),
                    other = fs::weakly_canonical(outer, failure).string();
  const bool is_further = own.starts_with(other + ".") && own.size() > other.size() + 1 &&
                          own.find_first_not_of("0123456789", other.size() + 1) == std::string::npos;
  if (own != other && !is_further) return {};
  return error(ErrorCode::invalid_argument, "{}: skillet capture, which runs this program, writes there", path);
}

Error taken(const std::string& path) {
  return error(ErrorCode::io, "{}: another recording was written there meanwhile", path);
}

}  // namespace

Result<OldCapture> OldCapture::at(const std::string& path) {
  OldCapture old;
  old.path_ = path;
  old.found_ = look_at(path);
  if (old.found_) SK_TRY(check_is_capture(path));
  SK_TRY(check_is_own(path));
  SK_TRY(check_is_finished(path));
  SK_TRY(check_place(path));
  return old;
}

OldCapture::OldCapture(OldCapture&& other) noexcept
    : path_(std::move(other.path_)), aside_(std::exchange(other.aside_, {})), found_(other.found_) {}

// link() fails if there is a new file; rename() would replace it.
OldCapture::~OldCapture() {
  if (!aside_.empty() && ::link(aside_.c_str(), path_.c_str()) == 0) ::unlink(aside_.c_str());
}

Result<void> OldCapture::set_aside() {
  if (!found_) return look_at(path_) ? Result<void>(taken(path_)) : Result<void>();
  SK_TRY_ASSIGN(std::string name, temporary_name(path_));
  if (::rename(path_.c_str(), name.c_str()) != 0) {
    if (errno == ENOENT) return {};  // removed meanwhile: nothing to set aside
    return error(ErrorCode::io, "{}: {}", path_, std::strerror(errno));
  }
  aside_ = std::move(name);
  const std::optional<struct stat> moved = look_at(aside_);
  return moved && is_same(*moved, *found_) ? Result<void>() : Result<void>(taken(path_));
}

void OldCapture::discard() {
  if (!aside_.empty()) ::unlink(std::exchange(aside_, {}).c_str());
}

}  // namespace skillet::tools
