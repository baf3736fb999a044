// Places buffers that are not needed at the same time in one piece of memory. A pure function.
// Called by drivers (encoders).
// Must not know: tensors, jobs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skillet::npu {

// Bytes that are needed from step `first` to step `last`, inclusive.
struct Lifetime {
  uint64_t size_bytes = 0;
  uint32_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // by lifetime; multiples of `align`
  uint64_t size_bytes = 0;
};
// Greedy: places each into the lowest gap, in four orders (by size, duration, their product, first use); then again,
// with the highest ones first. Returns the smallest plan. Deterministic.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, uint64_t align);
// The maximum needed at any one step: a lower bound for every plan.
uint64_t least_memory(std::span<const Lifetime> lifetimes, uint64_t align);

}  // namespace skillet::npu
