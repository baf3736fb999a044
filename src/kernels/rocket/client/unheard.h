// WaitForJobs: detects that the kernel ended a job by its own timeout although the job was done, for example because it
// ignores the interrupt of the computing unit. Results are right then, each 500 ms late, and no call reports it.
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

  // Call after the wait. False for longer times, when other files had their turns; if it was not waited for from the
  // start, so that the end is not known; and if this process was busy, as it may simulate the NPU itself.
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
