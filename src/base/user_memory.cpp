#include "base/user_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace skillet {

namespace {

using Copy = decltype(::process_vm_readv);

// 1: done, 0: sandboxes and emulators do not have the call: trust the pointer, as any library would.
int try_copy(Copy& copy, void* local, uint64_t user, size_t size_bytes) {
  if (size_bytes == 0) return 1;
  if (user == 0) return -EFAULT;
  const iovec here{local, size_bytes}, there{reinterpret_cast<void*>(user), size_bytes};
  const ssize_t copied = copy(::getpid(), &here, 1, &there, 1, 0);
  if (copied == static_cast<ssize_t>(size_bytes)) return 1;
  return copied >= 0 || errno == EFAULT ? -EFAULT : 0;
}

}  // namespace

int copy_from_user(void* to, uint64_t from, size_t size_bytes) {
  if (const int done = try_copy(::process_vm_readv, to, from, size_bytes); done != 0) return std::min(done, 0);
  std::memcpy(to, reinterpret_cast<const void*>(from), size_bytes);
  return 0;
}

int copy_to_user(uint64_t to, const void* from, size_t size_bytes) {
  if (const int done = try_copy(::process_vm_writev, const_cast<void*>(from), to, size_bytes); done != 0)
    return std::min(done, 0);
  std::memcpy(reinterpret_cast<void*>(to), from, size_bytes);
  return 0;
}

}  // namespace skillet
