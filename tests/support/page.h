// docs/support.md: which operations each chip takes, as its compiler answers.
// Called by support_main.cpp.
// Must not know: a vendor's anything.
#pragma once

#include <string>

#include "base/result.h"

namespace skillet::support {

// Error: a network of the tables cannot be made.
Result<std::string> page();

}  // namespace skillet::support
