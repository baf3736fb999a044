// JobClock: the time of a simulated board, by the timing model of its jobs. It advances only with submissions.
// Called by emulated kernel drivers (count) and the system calls of this process (read it).
// Must not know: any single kernel driver, the host's clock.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>

#include "sim/timing.h"

namespace skillet::fake {

class JobClock {
 public:
  explicit JobClock(std::unique_ptr<sim::Timer> timer) : timer_(std::move(timer)) {}

  // Nothing is counted before the first call.
  std::chrono::nanoseconds read();
  // Adds the call, the wait for its end, and cache maintenance of a buffer on each side.
  void count_submission();
  // Adds a job that has run: its tasks and their starts. Jobs that the model cannot read take no time.
  void count_job(const sim::Job& job, const sim::Memory& memory);

 private:
  std::mutex mutex_;
  std::unique_ptr<sim::Timer> timer_;
  bool is_read_ = false;
  double us_ = 0;
};

}  // namespace skillet::fake
