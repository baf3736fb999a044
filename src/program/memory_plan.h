// Where buffers that are not needed at the same time are in one piece of memory. A pure function.
// Called by drivers (encoders).
// Must not know: tensors, jobs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skillet::npu {

// Bytes that are needed from one step to another, both included.
struct Lifetime {
  uint64_t size_bytes = 0;
  uint32_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // by lifetime; multiples of `align`
  uint64_t size_bytes = 0;
};
// Greedy, each into the lowest gap: largest first, longest first, in order of use; then again with what came to be
// highest in front. The smallest result. Deterministic.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t align);
// The most that is needed at any one step: no plan is smaller.
uint64_t least_memory(std::span<const Lifetime> lifetimes, uint64_t align);

}  // namespace skillet::npu
