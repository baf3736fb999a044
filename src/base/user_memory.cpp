#include "base/user_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace skillet {
namespace {

using Copy = decltype(::process_vm_readv);

// Returns 0 or -EFAULT. None: sandboxes and emulators may lack the call; then the pointer is trusted, as in any
// library.
std::optional<int> try_copy(Copy& copy, void* local, uint64_t user, size_t size_bytes) {
  if (size_bytes == 0) return 0;
  if (user == 0) return -EFAULT;
  const iovec here{local, size_bytes}, there{reinterpret_cast<void*>(user), size_bytes};
  const ssize_t copied = copy(::getpid(), &here, 1, &there, 1, 0);
  if (copied == static_cast<ssize_t>(size_bytes)) return 0;
  if (copied >= 0 || errno == EFAULT) return -EFAULT;
  return std::nullopt;
}

}  // namespace

int copy_from_user(void* to, uint64_t from, size_t size_bytes) {
  if (const auto done = try_copy(::process_vm_readv, to, from, size_bytes)) return *done;
  std::memcpy(to, reinterpret_cast<const void*>(from), size_bytes);
  return 0;
}

int copy_to_user(uint64_t to, const void* from, size_t size_bytes) {
  if (const auto done = try_copy(::process_vm_writev, const_cast<void*>(from), to, size_bytes)) return *done;
  std::memcpy(reinterpret_cast<void*>(to), from, size_bytes);
  return 0;
}

}  // namespace skillet
