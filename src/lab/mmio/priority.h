// go_first(): whether the calling thread runs before all others of the machine. The guest gives up a read of a register
// after a while, so who answers it, and who holds a lock for that, must not wait for a turn.
// Called by the server and by devices' threads. Must not know: what they do.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace skillet::mmio {

// Without the right to do so nothing changes, and the machine has to be idle enough.
inline void go_first(bool is_first) {
  const sched_param parameter{.sched_priority = is_first ? 1 : 0};
  static_cast<void>(::pthread_setschedparam(::pthread_self(), is_first ? SCHED_FIFO : SCHED_OTHER, &parameter));
}

}  // namespace skillet::mmio
