// ProcessLock: a mutex that is free in a child of fork(), even if a thread of the parent held it: for globals of a
// library that installs no handlers of fork(). Needs no constructor or destructor to run. Called for lists of a whole
// process. Must not know: what is guarded.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/own_process.h"

namespace skillet {

class ProcessLock {
 public:
  void lock() { static_cast<void>(lock_in_process()); }
  // True: first lock in this process. The guarded data may be inconsistent, because a thread of the parent was changing
  // it.
  bool lock_in_process() {
    const uint64_t free = 2 * OwnProcess::number();
    for (uint64_t now = state_;;) {
      const bool is_held = now == free + 1;
      if (is_held) state_.wait(now);
      if (!is_held && state_.compare_exchange_weak(now, free + 1)) return now != free;
      if (is_held) now = state_;
    }
  }
  void unlock() {
    state_ = 2 * OwnProcess::number();
    state_.notify_one();
  }

 private:
  std::atomic<uint64_t> state_{0};
};

}  // namespace skillet
