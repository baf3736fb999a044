// Recording: what a client sends to a kernel driver, submission by submission, each before it runs and with the
// contents of its buffers. A FileRecorder stands before one open file; kernels/<kernel>/client/ has one that knows the
// driver's calls. Called by record() for devices of this process, and by the recorder for other programs
// (lab/interpose/). Must not know: any single kernel driver, where captures are kept.
#pragma once

#include <sys/ioctl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/user_memory.h"
#include "capture/file_writer.h"
#include "kernels/api/syscalls.h"

namespace skillet::kernels {

using RecordSink = capture::Sink;

// Whether a request is `known`, of this or another version of its argument: kernels distinguish calls by their numbers.
inline bool is_request(unsigned long request, unsigned long known) {
  return _IOC_TYPE(request) == _IOC_TYPE(known) && _IOC_NR(request) == _IOC_NR(known);
}

// The argument of a request, as kernels take it: what a shorter version does not have is 0. Null: it cannot be read.
template <typename Args>
std::optional<Args> argument_of(unsigned long request, uint64_t argument) {
  Args out{};
  if (copy_from_user(&out, argument, std::min<size_t>(sizeof out, _IOC_SIZE(request))) != 0) return std::nullopt;
  return out;
}

class FileRecorder {
 public:
  FileRecorder(SyscallsRef calls, std::string node, RecordSink sink)
      : calls_(std::move(calls)), node_(std::move(node)), sink_(std::move(sink)) {}
  virtual ~FileRecorder() = default;
  // Forwards one ioctl; its result.
  virtual int ioctl(int fd, unsigned long request, void* argument) = 0;
  // Held while a submission is recorded and runs.
  std::mutex& mutex() { return mutex_; }

 protected:
  // Forwards a submission, which record() has got.
  int submit(int fd, unsigned long request, void* argument);
  // Gives `sink_` what the call sends, with mutex_ held. Error invalid_argument: the kernel will refuse it, it is no
  // reason to stop.
  virtual Result<void> record(int fd, unsigned long request, uint64_t argument) = 0;
  // Whether this result says that nothing of it was run.
  virtual bool is_refused(int result) const { return result != 0; }

  const SyscallsRef calls_;
  const std::string node_;  // for the capture
  const RecordSink sink_;
  std::mutex mutex_;

 private:
  bool has_failed_ = false;  // guarded by mutex_
};

// What records the open file `fd`, by the kernel driver behind it; null for drivers that we do not speak to. `node`:
// its name for the capture.
std::shared_ptr<FileRecorder> recorder_of(const SyscallsRef& calls, int fd, const std::string& node, RecordSink sink);

// `calls` with each submission given to `sink` before it runs.
SyscallsRef record(const SyscallsRef& calls, RecordSink sink);

}  // namespace skillet::kernels
