// The identity of the compiler: a hash of its sources, made by the build (build_id.cmake).
// Called by the cache of compiled programs.
// Must not know: anything.
#pragma once

#include <string_view>

namespace skillet::compile {

// Hexadecimal digits; equal sources give the same digits on any machine.
std::string_view build_id();

}  // namespace skillet::compile
