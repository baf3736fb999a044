// Recording: where the submissions of a program that is recorded go: a capture file for each open file of each process.
// Called by the hooks of the recording library.
// Must not know: descriptors' copies.
#pragma once

#include <memory>

#include "uapi/recorder.h"

namespace skillet::interpose {

// The C library's own calls.
const uapi::SyscallsRef& libc_calls();

// What records the file behind `fd`; null for files of other drivers.
std::shared_ptr<uapi::FileRecorder> start_recording(int fd);

}  // namespace skillet::interpose
