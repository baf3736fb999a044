// Log lines to a function of the program instead of stderr.
// Called by the C interface.
// Must not know: who listens.
#pragma once

#include <functional>

#include "base/log.h"

namespace skillet::log {

using Sink = std::function<void(Level level, const char* message)>;

// From now on lines up to `level` go to `sink`, of all threads, one at a time; empty: to stderr again, as the
// environment says. When this returns, the former sink has been called for the last time. A sink may call this itself.
void set_sink(Sink sink, Level level);

}  // namespace skillet::log
