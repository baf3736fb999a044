// The performance counters that the kernel lists, by the numbers that user space asks with. It reads none of them here.
// Called by the emulated etnaviv. Must not know: submissions.
#pragma once

#include <optional>

#include "kernels/etnaviv/abi.h"

namespace skillet::fake::etnaviv {

// Fills in the domain of this number (`args.iter`), and the number after it; false: there is none.
bool describe_domain(kernels::etnaviv::PmDomain& args);
// The same of a signal of `args.domain`.
bool describe_signal(kernels::etnaviv::PmSignal& args);
bool has_signal(uint32_t domain, uint32_t signal);

}  // namespace skillet::fake::etnaviv
