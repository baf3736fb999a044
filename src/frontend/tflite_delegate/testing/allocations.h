// Counts calls of operator new in the whole program that links allocations.cpp.
// Called by tests of code that must not allocate.
// Must not know: anything.
#pragma once

#include <cstddef>

namespace skillet::delegate {

size_t allocation_count();

}  // namespace skillet::delegate
