// Quiet: when a file of rocket may be closed. After the fence of a job a worker of the kernel releases the job's
// buffers, without any notice; stock kernels use freed memory if the file is closed before (docs/devices.md). Called by
// the device of rocket; a process that ends with open files waits here too. Must not know: buffers, handles.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/own_process.h"

namespace skillet::kernels::rocket {

// Assumed time from the end of a job until the kernel has released its buffers. No kernel guarantees it.
constexpr std::chrono::milliseconds kReleaseTime{50};
// The kernel drops a job that has run for this long.
constexpr std::chrono::milliseconds kJobTimeout{500};

class Quiet {
 public:
  // `look` checks, without waiting, which jobs have ended. It is called when the process ends, on the thread that ends
  // it, while other threads may continue.
  explicit Quiet(std::function<void()> look);
  ~Quiet();
  Quiet(const Quiet&) = delete;

  // Call before and after a submission: `jobs` jobs may be unfinished. The kernel runs those of a file one after the
  // other, each for at most kJobTimeout. False: the process is ending and the jobs must not be submitted.
  bool submitted(size_t jobs);
  // All of them have ended, by their fences.
  void ended();
  // Remaining time until the file may be closed; 0 or less: now.
  std::chrono::nanoseconds still_to_wait() const;
  // State to restore with back_to() after a failed submission.
  std::chrono::nanoseconds quiet_at() const { return std::chrono::nanoseconds(quiet_at_ns_); }
  void back_to(std::chrono::nanoseconds quiet_at) { quiet_at_ns_ = quiet_at.count(); }

 private:
  friend void end_of_process();
  void set(std::chrono::nanoseconds from_now);

  const std::function<void()> look_;
  std::atomic<int64_t> quiet_at_ns_{0};  // steady_clock; other threads read it when the process ends
  Quiet* next_ = nullptr;                // list of all files of this process
  bool holds_end_ = false;               // a job was submitted
  const OwnProcess process_;
};

}  // namespace skillet::kernels::rocket
