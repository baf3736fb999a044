// The performance counters that the kernel lists, by the numbers of queries. Their values are not emulated. Called by
// the emulated etnaviv. Must not know: submissions.
#pragma once

#include <optional>

#include "kernels/etnaviv/abi.h"

namespace skillet::fake::etnaviv {

// Fills in the domain with this number (`args.iter`), and the next number; false: it does not exist.
bool describe_domain(kernels::etnaviv::PmDomain& args);
// The same for a signal of `args.domain`.
bool describe_signal(kernels::etnaviv::PmSignal& args);
bool has_signal(uint32_t domain, uint32_t signal);

}  // namespace skillet::fake::etnaviv
