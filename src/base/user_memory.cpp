#include "base/user_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace skillet {

int copy_from_user(void* to, uint64_t from, size_t size_bytes) {
  if (size_bytes == 0) return 0;
  if (from == 0) return -EFAULT;
  const iovec local{to, size_bytes}, remote{reinterpret_cast<void*>(from), size_bytes};
  const ssize_t copied = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  if (copied == static_cast<ssize_t>(size_bytes)) return 0;
  if (copied >= 0 || errno == EFAULT) return -EFAULT;
  // Sandboxes and emulators do not have the call: trust the pointer, as any library would.
  std::memcpy(to, reinterpret_cast<const void*>(from), size_bytes);
  return 0;
}

}  // namespace skillet
