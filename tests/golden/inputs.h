// Compares the bytes that our host and the recorded host write for graph inputs into device memory (converted values,
// padded channels, layout). The device reads them, but no command contains them.
// Called by compile_compare.cpp. Must not know: layouts, anything about vendors.
#pragma once

#include <string>
#include <vector>

#include "compile_compare.h"

namespace skillet::golden {

// Reads from the capture.json of `folder` the hashes of buffers whose bytes the recording does not keep.
Result<std::vector<BufferHash>> read_buffer_hashes(const std::string& folder);

// Adds differences to `comparison`, which maps the buffers of both sides. Counts how each input was compared.
InputCounts compare_inputs(const ComparedCase& c, npu::CaptureComparison& comparison);

}  // namespace skillet::golden
