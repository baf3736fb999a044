// The NPU families in this build and in the sources, for messages about a missing chip.
// Called by the registries of drivers and simulators, and the emulated kernel drivers.
// Must not know: a family or chip; their names come from cmake/vendors.cmake.
#pragma once

#include <string_view>

#include "base/result.h"

namespace skillet {

// "no chip 'x' (known: a, b)", or that its family is not built, or lacks this part. `what`: "driver", "simulator";
// `others`: chips that have one, as text.
Error no_chip(std::string_view name, std::string_view what, std::string_view others);

// The first chip of the first family that has a simulator; empty if none has. A literal, so it ends with a zero.
std::string_view default_chip();

}  // namespace skillet
