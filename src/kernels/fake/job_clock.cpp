#include "kernels/fake/job_clock.h"

namespace skillet::fake {

std::chrono::nanoseconds JobClock::read() {
  const std::lock_guard lock(mutex_);
  is_read_ = true;
  return std::chrono::nanoseconds(static_cast<int64_t>(us_ * 1e3));
}

void JobClock::count_submission() {
  const std::lock_guard lock(mutex_);
  if (!is_read_) return;
  us_ += timer_->wall_us(0, 0, 0, 1) + timer_->caches_us();
}

void JobClock::count_job(const sim::Job& job, const sim::Memory& memory) {
  const std::lock_guard lock(mutex_);
  if (!is_read_) return;
  const auto costs = timer_->time_job(job, memory);
  if (costs.ok()) us_ += timer_->wall_us(sim::total(*costs).us, costs->size(), 1, 0);
}

}  // namespace skillet::fake
