// Fence descriptors: an eventfd replaces the kernel's sync file; it is readable once its job has finished.
// Called by the submissions of emulated kernel drivers and by the ioctl hook of the virtual device node.
// Must not know: jobs.
#pragma once

#include <string>

namespace skillet::fake {

// A descriptor, close-on-exec, not signalled; or a negative errno.
int create_sync_file();
void signal_sync_file(int fd);

enum class SyncState { signalled, waiting, not_a_fence };
SyncState sync_state(int fd);

// SYNC_IOC_MERGE and SYNC_IOC_FILE_INFO, for fences that `driver` made; a negative errno otherwise.
int sync_file_ioctl(int fd, unsigned long request, void* argument, const std::string& driver);

}  // namespace skillet::fake
