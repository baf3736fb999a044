// go_first(): gives the calling thread real-time priority. The guest gives up a register read after a while, so the
// thread that answers it, and a thread that holds a lock for it, must not wait to be scheduled.
// Called by the server and by devices' threads. Must not know: what they do.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace skillet::mmio {

// Without the permission nothing changes; then the machine must be idle enough.
inline void go_first(bool is_first) {
  const sched_param parameter{.sched_priority = is_first ? 1 : 0};
  static_cast<void>(::pthread_setschedparam(::pthread_self(), is_first ? SCHED_FIFO : SCHED_OTHER, &parameter));
}

}  // namespace skillet::mmio
