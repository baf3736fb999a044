// FairMutex: lets threads in one after the other, in the order in which they came: none waits for more than one turn of
// each of the others. It keeps no list of who waits, so a child of fork() can destroy one that threads of its parent
// wait for.
// Called by whoever shares a device. Must not know: what is guarded.
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
