#include "kernels/fake/jobs.h"

#include <algorithm>
#include <cerrno>

namespace skillet::fake {

Jobs::Time Jobs::time(int64_t seconds, int64_t nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000, kFarthest = int64_t{1} << 32;
  const int64_t whole = std::clamp(seconds, -kFarthest, kFarthest) + nanoseconds / kSecond;
  const int64_t rest = std::max<int64_t>(0, nanoseconds % kSecond);
  return Time(std::chrono::seconds(std::clamp<int64_t>(whole, 0, kFarthest)) + std::chrono::nanoseconds(rest));
}

JobId Jobs::begin() {
  unfinished_.push_back({next_});
  return next_++;
}

void Jobs::stall(JobId job) {
  const auto found = std::ranges::find(unfinished_, job, &Unfinished::id);
  if (found != unfinished_.end()) found->stalls = true;
  changed_.notify_all();
}

void Jobs::finish(JobId job) {
  std::erase_if(unfinished_, [&](const Unfinished& one) { return one.id == job; });
  changed_.notify_all();
}

void Jobs::finish_all() {
  unfinished_.clear();
  changed_.notify_all();
}

bool Jobs::is_finished(JobId job) const {
  return std::ranges::find(unfinished_, job, &Unfinished::id) == unfinished_.end();
}

// True if it is queued or running.
bool Jobs::is_under_way(JobId job) const {
  const auto found = std::ranges::find(unfinished_, job, &Unfinished::id);
  return found != unfinished_.end() && !found->stalls;
}

int Jobs::wait(std::unique_lock<std::mutex>& lock, JobId job, Time deadline, bool is_nonblocking) {
  if (is_finished(job)) return 0;
  if (is_nonblocking) return -EBUSY;
  changed_.wait(lock, [&] { return !is_under_way(job); });
  return changed_.wait_until(lock, deadline, [&] { return is_finished(job); }) ? 0 : -ETIMEDOUT;
}

}  // namespace skillet::fake
