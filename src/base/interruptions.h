// How often in a row a call may be interrupted (EINTR) before that is an error like any other; at once when the program
// is to end.
// Called by what reads and writes files and pipes.
// Must not know: who interrupts.
#pragma once

#include <sys/types.h>

#include <cerrno>

#include "base/stop.h"

namespace skillet {

class Interruptions {
 public:
  // After each call, with what it returned: whether to try it again. A timer's signals, thousands a second, may
  // interrupt a call that waits for minutes.
  bool again(ssize_t result) {
    constexpr int kMost = 1'000'000;
    if (result >= 0 || errno != EINTR) {
      in_a_row_ = 0;
      return false;
    }
    return requested_stop() == 0 && ++in_a_row_ < kMost;
  }

 private:
  int in_a_row_ = 0;
};

}  // namespace skillet
