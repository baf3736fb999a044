// FairMutex: lets threads in one after the other, in the order in which they came: none waits for more than one turn of
// each of the others.
// Called by whoever shares a device. Must not know: what is guarded.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace skillet {

class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = next_++;
    turn_.wait(lock, [&] { return ticket == serving_; });
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      ++serving_;
    }
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t next_ = 0, serving_ = 0;
};

}  // namespace skillet
