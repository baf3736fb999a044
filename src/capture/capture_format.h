// The shell of capture files, shared by their reader, writer and tests.
// Called inside capture/ only.
// Must not know: anything else.
#pragma once

#include "capture/packed_file.h"

namespace skillet::capture {

inline constexpr PackedFormat kCaptureFormat{
    .magic = {'S', 'K', 'I', 'L', 'C', 'A', 'P', '\n'}, .version = 2, .what = "capture", .limit_bytes = 2ULL << 30};

}  // namespace skillet::capture
