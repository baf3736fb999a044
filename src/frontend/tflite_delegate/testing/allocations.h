// Counts allocations with operator new, of the whole program that links allocations.cpp.
// Called by tests of what must not allocate.
// Must not know: anything.
#pragma once

#include <cstddef>

namespace skillet::delegate {

size_t allocation_count();

}  // namespace skillet::delegate
