// FairMutex: admits threads in order of arrival, so that none waits for more than one turn of each other thread. It has
// no list of waiting threads, so a child of fork() can destroy a mutex that threads of its parent wait for.
// Called by code that shares a device. Must not know: what is guarded.
#pragma once

#include <atomic>
#include <cstdint>

namespace skillet {

class FairMutex {
 public:
  void lock() {
    const uint32_t ticket = next_.fetch_add(1);
    for (uint32_t now = serving_; now != ticket; now = serving_) serving_.wait(now);
  }
  void unlock() {
    ++serving_;
    serving_.notify_all();
  }

 private:
  std::atomic<uint32_t> next_{0}, serving_{0};
};

}  // namespace skillet
