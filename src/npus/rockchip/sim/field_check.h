// Which field values the simulator models: rows in limits.def and ignored.def.
// Called by registers.cpp for each value that a stream writes, and by the tests.
// Must not know: what the fields do.
#pragma once

#include "base/result.h"
#include "bits/bits.h"

namespace skillet::sim::rockchip {

// Error naming the first field of the register whose value is not modelled, or the bits without a field. `set` contains
// the register.
Result<void> check_fields(const bits::RegisterSet& set, const bits::Descriptor& descriptor, uint32_t value);

// Whether ignored.def lists the field: it has no effect on results.
bool is_ignored(const bits::Descriptor& descriptor, const bits::Row& row);

}  // namespace skillet::sim::rockchip
