// What a capture tells a device, as one number that no allocator changes: two captures that the judge finds the same
// have the same one (tested over all recorded cases), so that a change within a case that differs is seen.
// Called by compile_compare.cpp. Must not know: a vendor's anything.
#pragma once

#include "base/result.h"
#include "lab/compare/compare.h"

namespace skillet::golden {

// Of every value, of the bytes that the device reads, of which memory it uses, of lists and submit parameters. Buffers
// count by the order in which jobs name them, places in one by their distance from the first that is named. Not in it:
// sizes of buffers, which allocators round.
Result<uint64_t> fingerprint(const npu::Driver& driver, const npu::Chip& chip, npu::ComparedSide side);

}  // namespace skillet::golden
