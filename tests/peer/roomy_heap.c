// Preloaded library: adds zeroed space behind every block of the heap. peer.py repeats a case with it when the peer's
// driver crashed or computed a different result. If that helps, the driver accesses memory past the end of its own
// blocks, and its results depend on what happens to be there.
// Must not know: the program that uses it.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { kRoomBytes = 4096 };

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);

void* malloc(size_t bytes) {
  void* const block = bytes > SIZE_MAX - kRoomBytes ? NULL : __libc_malloc(bytes + kRoomBytes);
  if (block != NULL) memset((char*)block + bytes, 0, kRoomBytes);
  return block;
}

void* calloc(size_t count, size_t bytes) {
  size_t total = 0;
  if (!__builtin_mul_overflow(count, bytes, &total) && !__builtin_add_overflow(total, kRoomBytes, &total))
    return __libc_calloc(1, total);
  errno = ENOMEM;
  return NULL;
}
