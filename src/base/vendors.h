// Which NPU families this build has, of those that its sources have: for saying why a chip is not there.
// Called by the registries of drivers and simulators, and the emulated kernel drivers.
// Must not know: a family or chip; their names come from cmake/vendors.cmake.
#pragma once

#include <string_view>

#include "base/result.h"

namespace skillet {

// "no chip 'x' (known: a, b)", or that its family is not built, or has no such part yet. `what`: "driver", "simulator";
// `others`: which chips have one, as text.
Error no_chip(std::string_view name, std::string_view what, std::string_view others);

// The first chip of the first family that has a simulator; empty when none has. Ends with a zero, as a literal.
std::string_view default_chip();

}  // namespace skillet
