// The flag that the program should end. Loops and waits check it, so that devices are closed in order. The command's
// signal handler sets it (tools/cli/orderly_end.h); libraries install none, so in other programs it is never set.
// Called by code that runs jobs or layers in sequence, or reads for long. Must not know: the source of the request.
#pragma once

#include "base/result.h"

namespace skillet {

// Safe in a signal handler.
void request_stop(int signal);
// The signal; 0: none.
int requested_stop();
// Counted: held while a device is open whose kernel driver does not survive an abrupt end of the process.
void hold_end();
void release_end();
bool end_is_held();
// Error after a stop was requested.
Result<void> check_stop();

}  // namespace skillet
