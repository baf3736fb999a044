// Quiet: when a file of rocket may be closed. After the fence of a job a worker of the kernel releases the job's
// buffers, and nothing reports when it has; stock kernels use freed memory when the file is closed before
// (docs/devices.md). Called by the device of rocket; a process that ends with files open waits here too. Must not know:
// buffers, handles.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/own_process.h"

namespace skillet::kernels::rocket {

// From the end of a job to the moment when the kernel is taken to have released its buffers. No kernel promises it.
constexpr std::chrono::milliseconds kReleaseTime{50};
// The kernel throws a job away that has run for so long.
constexpr std::chrono::milliseconds kJobTimeout{500};

class Quiet {
 public:
  // `look` finds out, without a wait, which jobs have ended; it is called when the process ends, on the thread that
  // ends it, while other threads may go on.
  explicit Quiet(std::function<void()> look);
  ~Quiet();
  Quiet(const Quiet&) = delete;

  // Before and after a submission: so many jobs are not known to have ended. The kernel runs those of a file one after
  // the other, each for kJobTimeout at most. False: the process ends and has no time for them; they must not be sent.
  bool submitted(size_t jobs);
  // All of them have ended, as their fences say.
  void ended();
  // Until the file may be closed; 0 or less: now.
  std::chrono::nanoseconds still_to_wait() const;
  // A moment of before, for a submission that failed.
  std::chrono::nanoseconds quiet_at() const { return std::chrono::nanoseconds(quiet_at_ns_); }
  void back_to(std::chrono::nanoseconds quiet_at) { quiet_at_ns_ = quiet_at.count(); }

 private:
  friend void end_of_process();
  void set(std::chrono::nanoseconds from_now);

  const std::function<void()> look_;
  std::atomic<int64_t> quiet_at_ns_{0};  // steady_clock; other threads look at it when the process ends
  Quiet* next_ = nullptr;                // of all files of this process
  bool holds_end_ = false;               // a job was submitted
  const OwnProcess process_;
};

}  // namespace skillet::kernels::rocket
