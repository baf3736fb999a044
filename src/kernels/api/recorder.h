// Recording: what a client sends to a kernel driver, submission by submission, each before it runs and with the
// contents of its buffers. A FileRecorder wraps one open file; kernels/<kernel>/recorder/ has one for the driver's
// calls. Called by record() for devices of this process, and by the recorder for other programs (lab/interpose/). Must
// not know: any single kernel driver, where captures are kept.
#pragma once

#include <sys/ioctl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/user_memory.h"
#include "capture/file_writer.h"
#include "kernels/api/call_text.h"
#include "kernels/api/syscalls.h"

namespace skillet::kernels {

using RecordSink = capture::Sink;

// True if a request is `known`, with any size of its argument: kernels distinguish calls by their numbers.
inline bool is_request(unsigned long request, unsigned long known) {
  return _IOC_TYPE(request) == _IOC_TYPE(known) && _IOC_NR(request) == _IOC_NR(known);
}

// The argument of a request, read like a kernel does: fields beyond a shorter version are 0. None: it cannot be read.
template <typename Args>
std::optional<Args> argument_of(unsigned long request, uint64_t argument) {
  Args out{};
  if (copy_from_user(&out, argument, std::min<size_t>(sizeof out, _IOC_SIZE(request))) != 0) return std::nullopt;
  return out;
}

class FileRecorder {
 public:
  // `submission`: the request that submits jobs; `texts`: all calls of the driver, by number.
  FileRecorder(SyscallsRef calls, std::string node, RecordSink sink, unsigned long submission,
               std::span<const CallText> texts)
      : calls_(std::move(calls)),
        node_(std::move(node)),
        sink_(std::move(sink)),
        submission_(submission),
        texts_(texts) {}
  virtual ~FileRecorder();
  // Forwards one ioctl; returns its result.
  int ioctl(int fd, unsigned long request, void* argument);
  // From now on prints a line to standard error for each call.
  void trace() { traces_ = true; }
  // Held from the recording of a submission until it has run.
  std::mutex& mutex() { return mutex_; }

 protected:
  struct Buffer {
    uint64_t size_bytes = 0;
    uint64_t address = 0;      // on the device, if known
    uint64_t offset = 0;       // for mapping it, if the call that made it returned the offset
    uint64_t user_memory = 0;  // memory of the process, which may have been unmapped
    uint8_t* bytes = nullptr;  // mapped by us
    bool is_foreign = false;   // imported, and mapped through its dma-buf
  };
  // Notes the results of a successful call; requires mutex_.
  virtual void learn(unsigned long request, uint64_t argument) = 0;
  // Called before a handle is closed; requires mutex_.
  virtual void forget(uint32_t handle);
  // Passes the contents of the call to `sink_`; requires mutex_. Error invalid_argument: the kernel driver will refuse
  // the call; recording continues.
  virtual Result<void> record(int fd, unsigned long request, uint64_t argument) = 0;
  // True if this result means that no job of the call was run.
  virtual bool is_refused(int result) const { return result != 0; }

  const SyscallsRef calls_;
  const std::string node_;  // for the capture
  const RecordSink sink_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::map<uint32_t, Buffer> buffers_;  // by handle
  std::optional<capture::DeviceInfo> info_;

 private:
  int submit(int fd, unsigned long request, void* argument);
  int call(int fd, unsigned long request, void* argument);

  const unsigned long submission_;
  const std::span<const CallText> texts_;
  bool traces_ = false;
  bool has_failed_ = false;  // guarded by mutex_
};

// Makes the recorder of the open file `fd` for its kernel driver; null: unsupported driver. `node`: its name in the
// capture.
std::shared_ptr<FileRecorder> recorder_of(const SyscallsRef& calls, int fd, const std::string& node, RecordSink sink);

// Wraps `calls`: each submission is passed to `sink` before it runs.
SyscallsRef record(const SyscallsRef& calls, RecordSink sink);

}  // namespace skillet::kernels
