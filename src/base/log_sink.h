// Sends log lines to a function of the program instead of stderr.
// Called by the C interface.
// Must not know: what the sink does.
#pragma once

#include <functional>

#include "base/log.h"

namespace skillet::log {

using Sink = std::function<void(Level level, const char* message)>;

// Sends lines up to `level` of all threads to `sink`, one at a time; empty: to stderr again, as set by the environment.
// After it returns, the former sink is not called any more. A sink may call this function.
void set_sink(Sink sink, Level level);

}  // namespace skillet::log
