// Jobs: the fences of an emulated kernel driver. A job is unfinished from begin() to finish(); a hung one stays so. A
// simulated chip computes as slowly as its host is busy, so deadlines, which are the host's, count for jobs that stall
// only. Called by the emulated kernel drivers, which guard it with their own mutex.
// Must not know: what a job does.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/fake/condition.h"

namespace skillet::fake {

using JobId = uint32_t;  // counts up from 0 and wraps, as fences of kernels do

class Jobs {
 public:
  using Time = std::chrono::steady_clock::time_point;  // CLOCK_MONOTONIC
  // A moment as kernels take it; those that are too far away for us to represent are cut.
  static Time time(int64_t seconds, int64_t nanoseconds);

  JobId begin();
  // The chip has stopped at this job: it ends by a reset, if at all.
  void stall(JobId job);
  void finish(JobId job);
  void finish_all();
  bool is_finished(JobId job) const;
  bool all_finished() const { return unfinished_.empty(); }
  // 0, or -ETIMEDOUT when the job stalls and `deadline` passes, or -EBUSY at once when `is_nonblocking`. Lets go of
  // `lock` while it waits.
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
