// Kernels that use most planes, as one matrix product: input windows times kernels.
// Called by nn_fast.cpp.
// Must not know: descriptors, device addresses, the coefficient format.
#pragma once

#include "npus/vivante/sim/nn_job.h"

namespace skillet::sim::vivante {

// `packed` is the result of an earlier call for the same kernels, or empty.
void convolve_dense(const NnJob& job, std::span<const KernelTask> tasks, std::span<const uint8_t> in,
                    PackedKernels& packed);

}  // namespace skillet::sim::vivante
