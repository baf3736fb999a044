#include "interpose/jobs.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace skillet::interpose {

JobRef Jobs::begin() {
  const std::lock_guard lock(mutex_);
  auto job = std::make_shared<Job>();
  job->id = ++last_id_;
  unfinished_[job->id] = job;
  return job;
}

void Jobs::finish(const JobRef& job) {
  {
    const std::lock_guard lock(mutex_);
    job->finished = true;
    unfinished_.erase(job->id);
  }
  finished_.notify_all();
}

JobRef Jobs::find(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = unfinished_.find(id);
  return found == unfinished_.end() ? nullptr : found->second;
}

int Jobs::wait(const JobRef& job, uapi::etnaviv::Timespec deadline, bool is_nonblocking) {
  std::unique_lock lock(mutex_);
  if (job == nullptr || job->finished) return 0;
  if (is_nonblocking) return -EBUSY;
  // steady_clock is CLOCK_MONOTONIC. Far deadlines are cut: a time point counts nanoseconds in 63 bits.
  constexpr int64_t kFarthestSeconds = int64_t{1} << 32;
  const int64_t seconds = std::clamp<int64_t>(deadline.sec, 0, kFarthestSeconds);
  const std::chrono::steady_clock::time_point until(std::chrono::seconds(seconds) +
                                                    std::chrono::nanoseconds(deadline.nsec));
  const bool done = finished_.wait_until(lock, until, [&]() -> bool { return job->finished; });
  return done ? 0 : -ETIMEDOUT;
}

}  // namespace skillet::interpose
