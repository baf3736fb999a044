// Places buffers of a program that are not needed at the same time in shared memory. A pure function.
// Called by drivers (encoders), after all jobs are written.
// Must not know: tensors, what a job does.
#pragma once

#include <optional>
#include <span>

#include "program/memory_plan.h"
#include "program/program.h"

namespace skillet::npu {

// Adds a use of a buffer; merges it with an earlier use of the same buffer.
void add_use(std::vector<BufferUse>& uses, const BufferUse& use);

// Buffers with a lifetime (by BufferId; scratch, without contents) become parts of one new buffer, "intermediates".
// Each begins at a multiple of `align` bytes, and `slack_bytes` follow the last one. A buffer that contains a witness
// shares its bytes with no other. All references are updated; the other buffers keep their order.
void share_memory(Program& program, std::span<const std::optional<Lifetime>> lifetimes, uint64_t align,
                  uint64_t slack_bytes = 0);

}  // namespace skillet::npu
