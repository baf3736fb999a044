#include "kernels/api/recorder.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/log.h"
#include "base/stopwatch.h"
#include "kernels/api/forwarding_calls.h"
#include "kernels/api/kernels.h"

namespace skillet::kernels {
namespace {

class RecordingCalls final : public ForwardingCalls {
 public:
  RecordingCalls(SyscallsRef below, RecordSink sink) : ForwardingCalls(std::move(below)), sink_(std::move(sink)) {}

  int open(const std::string& path) override;
  int close(int fd) override;
  int ioctl(int fd, unsigned long request, void* argument) override;

 private:
  RecordSink sink_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<FileRecorder>> files_;
};

int RecordingCalls::open(const std::string& path) {
  const int fd = below_->open(path);
  if (fd < 0) return fd;
  auto recorder = recorder_of(below_, fd, path, sink_);
  const std::lock_guard lock(mutex_);
  files_[fd] = std::move(recorder);
  return fd;
}

int RecordingCalls::close(int fd) {
  std::shared_ptr<FileRecorder> ended;  // destroyed after unlocking
  const std::lock_guard lock(mutex_);
  if (const auto found = files_.find(fd); found != files_.end()) {
    ended = std::move(found->second);
    files_.erase(found);
  }
  return below_->close(fd);
}

int RecordingCalls::ioctl(int fd, unsigned long request, void* argument) {
  std::shared_ptr<FileRecorder> file;
  {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(fd);
    if (found != files_.end()) file = found->second;
  }
  return file == nullptr ? below_->ioctl(fd, request, argument) : file->ioctl(fd, request, argument);
}

}  // namespace

FileRecorder::~FileRecorder() {
  for (const auto& [handle, one] : buffers_) unmap(*calls_, one.bytes, one.size_bytes, one.is_foreign);
}

// Holds no lock during the call, which may wait for long. Forgets a buffer before it is closed, because another thread
// may get its handle afterwards.
int FileRecorder::ioctl(int fd, unsigned long request, void* argument) {
  const auto pointer = reinterpret_cast<uint64_t>(argument);
  if (is_request(request, submission_)) return submit(fd, request, argument);
  if (is_request(request, drm::kGemClose)) {
    if (const auto closing = argument_of<drm::GemClose>(request, pointer)) {
      const std::lock_guard lock(mutex_);
      forget(closing->handle);
    }
  }
  const int result = call(fd, request, argument);
  if (result == 0) {
    const std::lock_guard lock(mutex_);
    learn(request, pointer);
  }
  return result;
}

int FileRecorder::call(int fd, unsigned long request, void* argument) {
  if (!traces_) return calls_->ioctl(fd, request, argument);
  const Stopwatch clock;
  const int result = calls_->ioctl(fd, request, argument);
  const std::string line = fmt::format(
      "skillet: {}: {}\n", node_, call_line(texts_, request, reinterpret_cast<uint64_t>(argument), result, clock.ms()));
  std::fwrite(line.data(), 1, line.size(), stderr);
  return result;
}

void FileRecorder::forget(uint32_t handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return;
  unmap(*calls_, found->second.bytes, found->second.size_bytes, found->second.is_foreign);
  buffers_.erase(found);
}

// Records before the call, so that the file contains a job that crashes the process or the machine; removes the record
// if the call is refused.
int FileRecorder::submit(int fd, unsigned long request, void* argument) {
  const std::lock_guard lock(mutex_);
  bool is_recorded = false;
  if (!has_failed_) {
    const auto done = record(fd, request, reinterpret_cast<uint64_t>(argument));
    is_recorded = done.ok();
    if (!done.ok() && done.error().code != ErrorCode::invalid_argument) {
      has_failed_ = true;
      log::write(log::Level::error, "recording stops: " + done.error().message);
    }
  }
  const int result = call(fd, request, argument);
  if (is_refused(result) && is_recorded) {
    if (const auto dropped = sink_.drop_last(); !dropped.ok()) log::write(log::Level::error, dropped.error().message);
  }
  return result;
}

std::shared_ptr<FileRecorder> recorder_of(const SyscallsRef& calls, int fd, const std::string& node, RecordSink sink) {
  const auto version = DrmFile::borrow(calls, fd, node).version();
  const KernelDriver* const driver = version.ok() ? find_kernel_driver(version->name) : nullptr;
  return driver == nullptr ? nullptr : driver->record(calls, node, std::move(sink));
}

SyscallsRef record(const SyscallsRef& calls, RecordSink sink) {
  return std::make_shared<RecordingCalls>(calls, std::move(sink));
}

SyscallsRef record(const Core& core, const SyscallsRef& calls, capture::Capture& capture) {
  capture.device = core.info;
  return record(calls, capture::into(capture));
}

}  // namespace skillet::kernels
