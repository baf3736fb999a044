// Jobs: the fences of the simulated core. A job is unfinished from begin() to finish(); a hung one stays so for ever.
// Called by the virtual device node.
// Must not know: what a job does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "uapi/etnaviv_uapi.h"

namespace skillet::interpose {

struct Job {
  uint32_t id = 0;
  std::atomic<bool> finished = false;
};
using JobRef = std::shared_ptr<Job>;

class Jobs {
 public:
  JobRef begin();
  void finish(const JobRef& job);
  // The unfinished job of this id; null for finished and for unknown ones.
  JobRef find(uint32_t id);
  // 0, or -ETIMEDOUT when `deadline` (absolute, monotonic) passes, or -EBUSY at once when `is_nonblocking`.
  int wait(const JobRef& job, uapi::etnaviv::Timespec deadline, bool is_nonblocking);

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::map<uint32_t, JobRef> unfinished_;
  uint32_t last_id_ = 0;
};

}  // namespace skillet::interpose
