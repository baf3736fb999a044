// Whether the program was asked to end: what loops and waits look at, so that devices are closed in order. The
// command's handler of signals sets it (tools/cli/orderly_end.h); libraries install none, so in other programs it is
// never set. Called by what runs jobs or layers one after the other, and by what reads for long. Must not know: who
// asked.
#pragma once

#include "base/result.h"

namespace skillet {

// From a handler too.
void request_stop(int signal);
// The signal; 0: none.
int requested_stop();
// Counted: while some device is open whose kernel does not survive that the process ends at once.
void hold_end();
void release_end();
bool end_is_held();
// Error once it was asked for.
Result<void> check_stop();

}  // namespace skillet
