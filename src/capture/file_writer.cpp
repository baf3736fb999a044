#include "capture/file_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/interruptions.h"
#include "base/log.h"
#include "capture/frames.h"

namespace skillet::capture {

namespace {

using Create = Result<FileWriter> (*)(const std::string& path, const DeviceInfo& device);

bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}
bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<FileWriter> create_next(const std::string& path, const DeviceInfo& device) {
  constexpr int kNamesTried = 1000;
  for (int i = 1;; ++i) {
    const std::string name = i == 1 ? path : fmt::format("{}.{}", path, i);
    if (i == 1 && exists(name) && !is_file(name)) return error(ErrorCode::io, "{}: is not a regular file", name);
    if (exists(name) && i < kNamesTried) continue;
    auto writer = FileWriter::create(name, device);
    if (writer.ok() && i > 1) log::warning("{} exists; submissions to {} are recorded in {}", path, device.node, name);
    if (writer.ok() || !exists(name) || i >= kNamesTried) return writer;  // else another process was faster
  }
}

Sink into_created(std::string path, Create create) {
  const auto writer = std::make_shared<std::optional<FileWriter>>();
  return {.append = [writer, path = std::move(path), create](const DeviceInfo& info, Submission one) -> Result<void> {
            if (!*writer) {
              SK_TRY_ASSIGN(FileWriter created, create(path, info));
              writer->emplace(std::move(created));
            }
            return (*writer)->append(one);
          },
          .drop_last = [writer] { return (*writer)->drop_last(); }};
}

}  // namespace

struct FileWriter::State {
  int fd = -1;
  std::string path;
  uint64_t end = 0;
  FrameWriter frames;
  uint64_t end_before = 0;  // end of the last submission; 0: it cannot be dropped
  FrameWriter frames_before;

  ~State() {
    if (fd >= 0) ::close(fd);
  }
  Result<void> write(std::span<const uint8_t> bytes);
  Result<void> cut(uint64_t size_bytes);
};

Result<void> FileWriter::State::write(std::span<const uint8_t> bytes) {
  uint64_t at = end;
  Interruptions interruptions;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (interruptions.again(written)) continue;
    if (written <= 0) return error(ErrorCode::io, "{}: {}", path, std::strerror(written < 0 ? errno : ENOSPC));
    at += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  end = at;
  return {};
}

Result<void> FileWriter::State::cut(uint64_t size_bytes) {
  if (::ftruncate(fd, static_cast<off_t>(size_bytes)) != 0)
    return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  end = size_bytes;
  return {};
}

FileWriter::FileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

Result<FileWriter> FileWriter::create(const std::string& path, const DeviceInfo& device) {
  auto state = std::make_unique<State>();
  state->path = path;
  // Before the file is created: a failure here leaves no file.
  SK_TRY_ASSIGN(const Bytes frame, state->frames.device(device, kStartBytes).with_context(path));
  Bytes start = file_start();
  start.insert(start.end(), frame.begin(), frame.end());
  state->fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (state->fd < 0) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  // Shows other writers, until it is closed, that the file is not finished. Without support for locks it continues.
  if (::flock(state->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return error(ErrorCode::io, "{}: another recording is replacing it", path);
  if (auto written = state->write(start); !written.ok()) {
    ::unlink(path.c_str());
    return std::move(written).error();
  }
  return FileWriter(std::move(state));
}

Result<void> FileWriter::append(const Submission& submission) {
  FrameWriter before = state_->frames;
  const uint64_t end_before = state_->end;
  auto frame = state_->frames.submission(submission, end_before).with_context(state_->path);
  Result<void> done = frame.ok() ? state_->write(*frame) : Result<void>(std::move(frame).error());
  if (!done.ok()) {
    state_->frames = std::move(before);
    // One extra byte shows readers that there was more: the file is truncated.
    if (!state_->cut(end_before + 1).ok()) SK_TRY(state_->cut(end_before));
    state_->end = end_before;
    return done;
  }
  state_->frames_before = std::move(before);
  state_->end_before = end_before;
  return {};
}

Result<void> FileWriter::drop_last() {
  if (state_->end_before == 0) return {};
  state_->frames = std::move(state_->frames_before);
  return state_->cut(std::exchange(state_->end_before, 0));
}

Sink into(Capture& capture) {
  return {.append = [&capture](const DeviceInfo& info, Submission submission) -> Result<void> {
            capture.device = info;
            capture.submissions.push_back(std::move(submission));
            return {};
          },
          .drop_last = [&capture]() -> Result<void> {
            capture.submissions.pop_back();
            return {};
          }};
}

Sink into_file(std::string path) { return into_created(std::move(path), FileWriter::create); }

Sink into_next_file(std::string path) { return into_created(std::move(path), create_next); }

}  // namespace skillet::capture
