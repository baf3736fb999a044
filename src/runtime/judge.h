// What compiled programs take on a chip, by the timing model of its jobs: nothing runs, and what a job means does not
// count. Called by tuned_driver.h and tools. Must not know: drivers, what a choice means.
#pragma once

#include "compile/tune.h"
#include "driver/chip.h"

namespace skillet::runtime {

// Error unsupported, with the reason: the chip is not timed.
Result<compile::Judge> timing_judge(const driver::Chip& chip);

}  // namespace skillet::runtime
