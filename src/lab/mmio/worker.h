// Worker: the thread of a device that computes its jobs, and the lock of the device's state. A job is computed without
// the lock, as registers answer at once; afterwards the device may have been reset.
// Called by the cores in lab/mmio/<kernel driver>/. Must not know: registers, what a job is.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/caught.h"
#include "lab/mmio/priority.h"

namespace skillet::mmio {

class Worker {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // `work`: one step, called with the lock held; it waits, computes or both. It is repeated until end().
  explicit Worker(std::function<void(Lock&)> work) : thread_([this, work = std::move(work)] { run(work); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Gets the lock at the end of the current step at the latest: endless work does not block other threads.
  Lock lock() const {
    ++waiting_;
    Lock lock(mutex_);
    --waiting_;
    return lock;
  }
  bool computes() const { return computes_; }
  // With the lock held:
  void wake() { changed_.notify_all(); }
  void wait(Lock& lock) { changed_.wait(lock); }
  template <typename Time, typename Condition>
  void wait_for(Lock& lock, Time time, Condition condition) {
    changed_.wait_for(lock, time, condition);
  }
  void wait_until_idle(Lock& lock) {
    changed_.wait(lock, [&] { return !computes_; });
  }
  // Runs `compute` for a job without the lock. Returns its errors and exceptions.
  Result<void> compute(Lock& lock, const std::function<Result<void>()>& compute) {
    computes_ = true;
    lock.unlock();
    go_first(false);
    Result<void> done = caught(compute);
    go_first(true);
    lock.lock();
    computes_ = false;
    changed_.notify_all();
    return done;
  }
  // Must be called before the data that `work` uses is destroyed.
  void end() {
    {
      const Lock held = lock();
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void run(const std::function<void(Lock&)>& work) {
    go_first(true);
    Lock lock(mutex_);
    while (!ends_) {
      work(lock);
      if (waiting_ == 0) continue;
      lock.unlock();
      while (waiting_ != 0) std::this_thread::yield();
      lock.lock();
    }
  }

  mutable std::mutex mutex_;
  mutable std::atomic<int> waiting_ = 0;  // threads in lock()
  std::condition_variable changed_;
  bool computes_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace skillet::mmio
