// A slower clock for a kernel that runs as a process: its calls of the C library's time functions count 1 / GUEST_CLOCK
// of the host's seconds. For LD_PRELOAD; linux/kernel.py sets it (--slow). Drivers then wait longer, by the host's
// clock, for jobs that a simulator computes. Independent of devices. The time of day is the host's, like the times of
// files.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "base/environment.h"

using skillet::environment_variable;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

timespec time_of(int64_t nanoseconds) {
  timespec time{};
  time.tv_sec = nanoseconds / kSecond;
  time.tv_nsec = nanoseconds % kSecond;
  return time;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Created when the library is loaded, because signal handlers make the calls below too.
struct Clock {
  decltype(&::clock_gettime) get = next<decltype(::clock_gettime)>("clock_gettime");
  decltype(&::timer_settime) set = next<decltype(::timer_settime)>("timer_settime");
  int64_t factor = 1;

  Clock() {
    const char* text = environment_variable("GUEST_CLOCK");
    if (text != nullptr && std::atoll(text) > 0) factor = std::atoll(text);
  }
};
const Clock clock_;

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = clock_.get(clock, time);
  if (result == 0 && clock == CLOCK_MONOTONIC) *time = time_of(nanoseconds(*time) / clock_.factor);
  return result;
}

extern "C" __attribute__((visibility("default"))) int timer_settime(timer_t timer, int flags, const itimerspec* value,
                                                                    itimerspec* old) noexcept {
  const itimerspec slow{time_of(nanoseconds(value->it_interval) * clock_.factor),
                        time_of(nanoseconds(value->it_value) * clock_.factor)};
  return clock_.set(timer, flags, &slow, old);
}
