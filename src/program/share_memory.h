// Gives buffers of a program that are not needed at the same time one memory. A pure function.
// Called by drivers (encoders), when all jobs are written.
// Must not know: tensors, what a job does.
#pragma once

#include <optional>
#include <span>

#include "program/memory_plan.h"
#include "program/program.h"

namespace skillet::npu {

// Says that a job uses a buffer, once for each.
void add_use(std::vector<BufferUse>& uses, const BufferUse& use);

// Buffers with a lifetime (by BufferId; scratch, without contents) become places of one more buffer, "intermediates",
// of which each begins at a multiple of `align` bytes and `slack_bytes` follow the last one. A buffer in which a
// witness is keeps its place to itself. All that names a buffer follows; the other buffers keep their order.
void share_memory(Program& program, std::span<const std::optional<Lifetime>> lifetimes, uint64_t align,
                  uint64_t slack_bytes = 0);

}  // namespace skillet::npu
