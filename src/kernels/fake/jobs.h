// Jobs: the fences of an emulated kernel driver. A job is unfinished from begin() to finish(); a hung one remains so.
// The speed of a simulated chip depends on the load of its host, so deadlines, in host time, apply only to jobs that
// stall. Called by the emulated kernel drivers, which guard it with their own mutex.
// Must not know: what a job does.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/fake/condition.h"

namespace skillet::fake {

using JobId = uint32_t;  // counts up from 0 and wraps, as in kernels

class Jobs {
 public:
  using Time = std::chrono::steady_clock::time_point;  // CLOCK_MONOTONIC
  // Converts a time as in kernels; times that are too far away are clamped.
  static Time time(int64_t seconds, int64_t nanoseconds);

  JobId begin();
  // The chip has stopped at this job: only a reset ends it.
  void stall(JobId job);
  void finish(JobId job);
  void finish_all();
  bool is_finished(JobId job) const;
  bool all_finished() const { return unfinished_.empty(); }
  // Returns 0; or -ETIMEDOUT if the job stalls and `deadline` passes; or -EBUSY at once if `is_nonblocking`. Releases
  // `lock` while waiting.
  int wait(std::unique_lock<std::mutex>& lock, JobId job, Time deadline, bool is_nonblocking);

 private:
  struct Unfinished {
    JobId id = 0;
    bool stalls = false;
  };
  bool is_under_way(JobId job) const;

  std::vector<Unfinished> unfinished_;
  Condition changed_;
  JobId next_ = 0;
};

}  // namespace skillet::fake
