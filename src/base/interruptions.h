// Limits how often in a row a call may be interrupted (EINTR) before that counts as an error; zero times if the program
// is to end.
// Called by code that reads and writes files and pipes.
// Must not know: the source of interruptions.
#pragma once

#include <sys/types.h>

#include <cerrno>

#include "base/stop.h"

namespace skillet {

class Interruptions {
 public:
  // Call after each system call, with its result; returns whether to repeat it. A timer may send thousands of signals a
  // second to a call that waits for minutes.
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
