// Bytes of graph inputs in the memory of the device: what our host writes there against what the recorded host wrote
// (values converted, channels padded, the layout). The device reads them, though no command holds them.
// Called by compile_compare.cpp. Must not know: layouts, a vendor's anything.
#pragma once

#include <string>
#include <vector>

#include "compile_compare.h"

namespace skillet::golden {

// Hashes of buffers of which the recording keeps no bytes, from the capture.json of `folder`.
Result<std::vector<BufferHash>> read_buffer_hashes(const std::string& folder);

// Adds what differs to `comparison`, which says which buffers stand for which. Counts how each input was judged.
InputCounts compare_inputs(const ComparedCase& c, npu::CaptureComparison& comparison);

}  // namespace skillet::golden
