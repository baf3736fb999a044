#include "base/own_process.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "base/int_math.h"
#include "base/leaked.h"

namespace skillet {
namespace {

constexpr size_t kLargestPageBytes = 65536;
// Contains a whole page at any alignment. Not allocated, so that unloaded libraries leave nothing behind.
std::byte g_room[2 * kLargestPageBytes];

// A word that is 0 in a new process; null if the kernel or an emulator does not support this.
std::atomic<uint64_t>* cleared_by_fork() {
  return leaked([]() -> std::atomic<uint64_t>* {
    const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    if (page_bytes > kLargestPageBytes) return nullptr;
    const auto start = reinterpret_cast<uintptr_t>(g_room);
    std::byte* const page = g_room + (align_up(start, page_bytes) - start);
    // The word is 0, or the number if another thread was first.
    return ::madvise(page, page_bytes, MADV_WIPEONFORK) == 0 ? reinterpret_cast<std::atomic<uint64_t>*>(page) : nullptr;
  });
}

}  // namespace

uint64_t OwnProcess::number() {
  static std::atomic<uint64_t> last{0};  // a child continues with its parent's value
  std::atomic<uint64_t>* const word = cleared_by_fork();
  if (word == nullptr) return static_cast<uint64_t>(::getpid());
  uint64_t known = *word;
  if (known != 0) return known;
  const uint64_t fresh = ++last;
  return word->compare_exchange_strong(known, fresh) ? fresh : known;
}

}  // namespace skillet
