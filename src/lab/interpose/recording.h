// Recording: the capture files of a recorded program, one for each open file of each process.
// Called by the hooks of the recording library.
// Must not know: copies of descriptors.
#pragma once

#include <memory>

#include "kernels/api/recorder.h"

namespace skillet::interpose {

// The C library's own calls.
const kernels::SyscallsRef& libc_calls();

// The recorder of the file behind `fd`; null for files of other drivers.
std::shared_ptr<kernels::FileRecorder> start_recording(int fd);

}  // namespace skillet::interpose
