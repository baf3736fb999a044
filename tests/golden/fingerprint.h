// A hash of the jobs of a capture that does not depend on the allocator. Captures that compare as identical have the
// same fingerprint (tested over all recorded cases), so changes within a case that differs show.
// Called by compile_compare.cpp. Must not know: anything about vendors.
#pragma once

#include "base/result.h"
#include "lab/compare/compare.h"

namespace skillet::golden {

// Hashes every value, the bytes that the device reads, the memory that it uses, lists and submit parameters. Buffers
// are numbered in the order in which jobs name them, and places by their distance from the first named place of the
// buffer. Excludes sizes of buffers, which allocators round.
Result<uint64_t> fingerprint(const npu::Driver& driver, const npu::Chip& chip, npu::ComparedSide side);

}  // namespace skillet::golden
