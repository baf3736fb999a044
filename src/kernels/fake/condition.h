// Condition: a condition variable of an emulated kernel driver in a process that forks. It is new in a child: the
// parent's waiting threads do not exist there, and a std::condition_variable would wait for them when it is signalled
// or destroyed.
// Called by the emulated kernel drivers, which hold their own mutex around all of it.
// Must not know: the condition.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "base/own_process.h"

namespace skillet::fake {

class Condition {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Condition() { std::construct_at(&variable_); }
  ~Condition() {
    if (owner_.is_here()) std::destroy_at(&variable_);
  }
  Condition(const Condition&) = delete;

  void notify_all() { here().notify_all(); }
  void wait(Lock& lock) { here().wait(lock); }
  template <typename Predicate>
  void wait(Lock& lock, Predicate predicate) {
    here().wait(lock, std::move(predicate));
  }
  template <typename Time, typename Predicate>
  bool wait_until(Lock& lock, Time time, Predicate predicate) {
    return here().wait_until(lock, time, std::move(predicate));
  }
  template <typename Duration, typename Predicate>
  bool wait_for(Lock& lock, Duration duration, Predicate predicate) {
    return here().wait_for(lock, duration, std::move(predicate));
  }

 private:
  std::condition_variable& here() {
    if (!owner_.is_here()) {
      std::construct_at(&variable_);
      owner_ = OwnProcess();
    }
    return variable_;
  }

  union {
    std::condition_variable variable_;
  };
  OwnProcess owner_;
};

}  // namespace skillet::fake
