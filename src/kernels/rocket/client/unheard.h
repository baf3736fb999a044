// WaitForJobs: whether the kernel ended a job by its own timeout though the job is done, as where it does not listen to
// the unit that computes. Results are right then, each 500 ms late, and no call reports it: only the time shows it.
// Called by the device of rocket. Must not know: buffers, jobs.
#pragma once

#include <chrono>
#include <ctime>

#include "kernels/rocket/client/quiet.h"

namespace skillet::kernels::rocket {

class WaitForJobs {
 public:
  using Clock = std::chrono::steady_clock;
  explicit WaitForJobs(Clock::time_point sent) : sent_(sent) {}

  // After the wait. Longer: other files had their turn. Not waited for from the start: nobody knows when it ended.
  // Where this process was busy: it may be one that simulates the NPU itself.
  bool ended_by_timeout() const {
    constexpr std::chrono::milliseconds kSlack{100}, kIdle{50};
    const auto now = Clock::now();
    const auto busy = std::chrono::duration<double>(static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC);
    return now - sent_ >= kJobTimeout && now - sent_ < kJobTimeout + kSlack && now - begun_ >= kJobTimeout - kSlack &&
           busy < kIdle;
  }

 private:
  const Clock::time_point sent_, begun_ = Clock::now();
  const std::clock_t cpu_ = std::clock();
};

}  // namespace skillet::kernels::rocket
